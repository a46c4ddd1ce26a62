"""What stands around a model: modules by name, data, transforms of pictures, several cards, regularisers."""

from __future__ import annotations

from collections.abc import Iterator

from parfocal.backends.counterparts.entry import ArgumentPair, Category, Counterpart, pairs

# Modules, by what they hold.
MODULES: tuple[tuple[str, str], ...] = (
    ("torch.nn", "paddle.nn"),
    ("torch.nn.functional", "paddle.nn.functional"),
    ("torch.nn.init", "paddle.nn.initializer"),
    ("torch.optim", "paddle.optimizer"),
    ("torch.optim.lr_scheduler", "paddle.optimizer.lr"),
    ("torch.utils.data", "paddle.io"),
    ("torch.amp", "paddle.amp"),
    ("torch.distributed", "paddle.distributed"),
    ("torch.distributed.run", "paddle.distributed.launch"),
    ("torchvision", "paddle.vision"),
    ("torchvision.transforms", "paddle.vision.transforms"),
    ("torchvision.transforms.functional", "paddle.vision.transforms.functional"),
    ("torchvision.datasets", "paddle.vision.datasets"),
    ("torchvision.models", "paddle.vision.models"),
)
_TRANSFORMS = (
    *("Compose", "Resize", "RandomResizedCrop", "CenterCrop", "RandomCrop", "Pad", "Normalize", "ToTensor"),
    *("RandomHorizontalFlip", "RandomVerticalFlip", "RandomAffine", "RandomRotation", "RandomPerspective"),
    *("RandomErasing", "ColorJitter", "Grayscale"),
)
_PICTURE_FUNCTIONS = (
    *("to_tensor", "hflip", "vflip", "resize", "pad", "affine", "rotate", "perspective", "to_grayscale"),
    *("crop", "center_crop", "normalize", "erase", "adjust_brightness", "adjust_contrast", "adjust_hue"),
)
_DATA = (
    *("IterableDataset", "TensorDataset", "ConcatDataset", "ChainDataset", "Subset", "random_split"),
    *("Sampler", "RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler", "BatchSampler"),
    "get_worker_info",
)
_CARDS = (
    *("get_world_size", "get_rank", "is_initialized", "is_available", "destroy_process_group", "new_group"),
    *("all_reduce", "all_gather", "broadcast", "reduce", "reduce_scatter", "scatter", "send", "recv"),
    *("barrier", "get_backend", "ReduceOp"),
)
# torch's home, paddle's, and what both call the same.
SAME_NAMES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("torchvision.transforms", "paddle.vision.transforms", _TRANSFORMS),
    ("torchvision.transforms.functional", "paddle.vision.transforms", _PICTURE_FUNCTIONS),
    ("torch.utils.data", "paddle.io", _DATA),
    ("torch.distributed", "paddle.distributed", _CARDS),
    (
        *("torchvision.datasets", "paddle.vision.datasets"),
        ("MNIST", "FashionMNIST", "ImageFolder", "DatasetFolder"),
    ),
    ("torch.Tensor", "paddle.Tensor", ("item", "numpy", "__float__", "add_")),
    ("torch.optim.Optimizer", "paddle.optimizer.Optimizer", ("step", "state_dict")),
)
RENAMED: tuple[tuple[str, str], ...] = (
    ("torch.utils.data.SequentialSampler", "paddle.io.SequenceSampler"),
    ("torchvision.datasets.CIFAR10", "paddle.vision.datasets.Cifar10"),
    ("torchvision.datasets.CIFAR100", "paddle.vision.datasets.Cifar100"),
    ("torch.distributed.init_process_group", "paddle.distributed.init_parallel_env"),
    ("torch.nn.parallel.DistributedDataParallel", "paddle.DataParallel"),
    ("torch.cuda.manual_seed_all", "paddle.seed"),
    ("torch.nn.Parameter", "paddle.nn.Parameter"),
    ("torch.nn.utils.parametrizations.weight_norm", "paddle.nn.utils.weight_norm"),
    ("torch.nn.utils.parametrizations.spectral_norm", "paddle.nn.utils.spectral_norm"),
    ("torch.optim.Optimizer", "paddle.optimizer.Optimizer"),
    ("torch.optim.Optimizer.load_state_dict", "paddle.optimizer.Optimizer.set_state_dict"),
    ("torch.optim.lr_scheduler.LRScheduler", "paddle.optimizer.lr.LRScheduler"),
    ("torch.optim.lr_scheduler.LRScheduler.get_lr", "paddle.optimizer.lr.LRScheduler.get_lr"),
    ("torch.optim.lr_scheduler.LRScheduler.get_last_lr", "paddle.optimizer.Optimizer.get_lr"),
)
# What comes nearest to something that the other framework has in another form.
NEAREST: tuple[tuple[str, str], ...] = (
    ("torch.nn.DataParallel", "paddle.DataParallel"),
    ("torch.nn.functional.rms_norm", "paddle.incubate.nn.functional.fused_rms_norm"),
)
_CHANCE = pairs(p="prob")
_MODULE = pairs(module="layer")
ARGUMENTS: dict[str, tuple[ArgumentPair, ...]] = {
    **{f"torchvision.transforms.Random{name}": _CHANCE for name in ("HorizontalFlip", "VerticalFlip")},
    **{f"torchvision.transforms.Random{name}": _CHANCE for name in ("Perspective", "Erasing")},
    "torch.nn.utils.parametrizations.weight_norm": _MODULE,
    "torch.nn.utils.parametrizations.spectral_norm": _MODULE,
    "torch.nn.parallel.DistributedDataParallel": pairs(module="layers"),
    "torch.nn.DataParallel": pairs(module="layers"),
}
# What only one side has, and what to write on the other.
LONE = {
    "paddle.ParamAttr": "Write torch.nn.init for its initializer, a parameter group of the optimizer for its "
    "learning_rate and regularizer, and requires_grad=False for trainable=False.",
    "paddle.regularizer": "",
    "paddle.regularizer.L1Decay": "Add coeff * w.abs().sum() of every weight w to the loss.",
    "paddle.regularizer.L2Decay": "Pass weight_decay=coeff to the optimizer; of Adam, not of AdamW.",
    "paddle.nn.ClipGradByNorm": "Write torch.nn.utils.clip_grad_norm_([p], clip_norm) for every parameter p.",
    "paddle.metric": "",
    "paddle.io.ComposeDataset": "",
    "paddle.vision.transforms.BaseTransform": "",
    "paddle.vision.transforms.Transpose": "",
    "paddle.vision.transforms.BrightnessTransform": "Write ColorJitter(brightness=value).",
    "paddle.vision.transforms.ContrastTransform": "Write ColorJitter(contrast=value).",
    "paddle.vision.transforms.SaturationTransform": "Write ColorJitter(saturation=value).",
    "paddle.vision.transforms.HueTransform": "Write ColorJitter(hue=value).",
    "torch.backends.cuda.matmul.allow_tf32": "",
}


def tools() -> list[Counterpart]:
    """Every entry of the tables above."""
    return [
        *(Counterpart(Category.MODULE, ours, theirs) for ours, theirs in MODULES),
        *(_entry(ours, theirs) for ours, theirs in (*_same_names(), *RENAMED)),
        *(_entry(ours, theirs, exact=False) for ours, theirs in NEAREST),
        *(lone(Category.TOOL, name, instead) for name, instead in LONE.items()),
    ]


def lone(category: Category, name: str, instead: str) -> Counterpart:
    """Something that only one side has."""
    is_paddle = name.startswith("paddle.")
    return Counterpart(category, None if is_paddle else name, name if is_paddle else None, instead=instead)


def _same_names() -> Iterator[tuple[str, str]]:
    for ours, theirs, names in SAME_NAMES:
        yield from ((f"{ours}.{name}", f"{theirs}.{name}") for name in names)


def _entry(ours: str, theirs: str, *, exact: bool = True) -> Counterpart:
    return Counterpart(Category.TOOL, ours, theirs, arguments=ARGUMENTS.get(ours, ()), exact=exact)
