"""Differences in data, augmentation and metrics."""

from __future__ import annotations

from parfocal.backends.gaps.entry import Family, Gap, Status, Symptom, Wording

GAPS: tuple[Gap, ...] = (
    Gap(
        "resize-backend",
        Family.DATA,
        Status.VERIFIED,
        (Symptom.DATA,),
        ("torchvision.transforms.Resize",),
        ("paddle.vision.transforms.Resize",),
        Wording(
            "Resize depends on the type of its input",
            "Images are resized by PIL.",
            "PIL images are resized by PIL, arrays by OpenCV.",
            "Pixels differ by up to 59 of 255 for arrays, and not at all for PIL images.",
            "Give PIL images to the transform.",
        ),
    ),
    Gap(
        "resize-antialiasing",
        Family.DATA,
        Status.VERIFIED,
        (Symptom.DATA,),
        ("torchvision.transforms.Resize",),
        ("paddle.vision.transforms.Resize",),
        Wording(
            "Tensors are resized without smoothing",
            "antialias=True smooths a tensor before it is made smaller.",
            "There is no antialias.",
            "Pixels differ by up to 119 of 255.",
            "Resize PIL images, or pass antialias=False in torchvision.",
        ),
    ),
    Gap(
        "colour-adjustment-backend",
        Family.DATA,
        Status.VERIFIED,
        (Symptom.DATA,),
        ("torchvision.transforms.functional.adjust_hue", "torchvision.transforms.functional.adjust_contrast"),
        ("paddle.vision.transforms.adjust_hue", "paddle.vision.transforms.adjust_contrast"),
        Wording(
            "Colours of arrays are adjusted by OpenCV",
            "PIL adjusts hue and contrast.",
            "PIL images go through PIL, arrays through OpenCV.",
            "Pixels differ by up to 254 (hue) and 16 (contrast).",
            "Give PIL images to the functions.",
        ),
    ),
    Gap(
        "random-transforms",
        Family.DATA,
        Status.VERIFIED,
        (Symptom.DATA,),
        ("torchvision.transforms.RandomHorizontalFlip",),
        ("paddle.vision.transforms.RandomHorizontalFlip",),
        Wording(
            "Random transforms have another argument and another generator",
            "The probability is p, and torch's generator decides.",
            "The probability is prob, and Python's random decides.",
            "The same seed gives other images.",
            "Share the augmented arrays between the two sides.",
        ),
    ),
    Gap(
        "shuffling-generator",
        Family.DATA,
        Status.VERIFIED,
        (Symptom.DATA,),
        ("torch.utils.data.DataLoader", "torch.utils.data.RandomSampler"),
        ("paddle.io.DataLoader", "paddle.io.RandomSampler"),
        Wording(
            "The order of samples comes from NumPy",
            "torch.manual_seed fixes the order.",
            "np.random decides the order; paddle.seed has no effect on it.",
            "The orders differ, and change from run to run.",
            "Seed np.random, or give both sides one list of indices.",
        ),
    ),
    Gap(
        "distributed-sampler-shuffling",
        Family.DATA,
        Status.READ,
        (Symptom.DATA, Symptom.TRAINING),
        ("torch.utils.data.distributed.DistributedSampler",),
        ("paddle.io.DistributedBatchSampler",),
        Wording(
            "The distributed sampler does not shuffle by default",
            "shuffle is True by default.",
            "shuffle is False by default.",
            "The port sees its samples in the same order in every epoch.",
            "Pass shuffle explicitly.",
        ),
    ),
    Gap(
        "accuracy-unit",
        Family.DATA,
        Status.VERIFIED,
        (Symptom.METRIC,),
        (),
        ("paddle.metric.Accuracy", "paddle.metric.accuracy"),
        Wording(
            "Accuracy is a fraction on one side",
            "torch has no metric of its own; the reference scripts of torchvision give per cent.",
            "paddle.metric gives a fraction.",
            "One number is a hundred times the other.",
            "Multiply by 100, or divide.",
        ),
        absent=("paddle.metric.Accuracy", "paddle.metric.accuracy"),
    ),
)
