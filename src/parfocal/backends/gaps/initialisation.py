"""Differences in how weights begin."""

from __future__ import annotations

from parfocal.backends.gaps.entry import Family, Gap, Status, Symptom, Wording, ranked

GAPS: tuple[Gap, ...] = (
    Gap(
        "linear-initialiser",
        Family.INITIALISATION,
        Status.VERIFIED,
        (Symptom.TRAINING,),
        ("torch.nn.Linear",),
        ("paddle.nn.Linear",),
        Wording(
            "Linear begins with other weights",
            "The weight is Kaiming uniform with a=√5, and the bias is uniform.",
            "The weight is Xavier uniform, and the bias is 0.",
            "The standard deviations of fresh weights differ.",
            "Pass weight_attr and bias_attr with the initialiser of torch, or load weights made by torch.",
        ),
    ),
    Gap(
        "convolution-initialiser",
        Family.INITIALISATION,
        Status.VERIFIED,
        (Symptom.TRAINING,),
        ranked("torch.nn.Conv{}d"),
        ranked("paddle.nn.Conv{}D"),
        Wording(
            "Convolutions begin with other weights",
            "The weight is Kaiming uniform with a=√5, and the bias is uniform.",
            "The weight is normal with the standard deviation √(2 / fan_in), and the bias is 0.",
            "The standard deviations of fresh weights differ.",
            "Pass weight_attr and bias_attr with the initialiser of torch, or load weights made by torch.",
        ),
    ),
    Gap(
        "embedding-initialiser",
        Family.INITIALISATION,
        Status.VERIFIED,
        (Symptom.TRAINING,),
        ("torch.nn.Embedding",),
        ("paddle.nn.Embedding",),
        Wording(
            "Embedding begins with other weights",
            "The weight is normal with the standard deviation 1.",
            "The weight is Xavier uniform.",
            "The standard deviation of fresh weights is far smaller in the port.",
            "Pass weight_attr=paddle.nn.initializer.Normal(0.0, 1.0).",
        ),
    ),
    Gap(
        "uniform-initialiser-range",
        Family.INITIALISATION,
        Status.VERIFIED,
        (Symptom.TRAINING,),
        ("torch.nn.init.uniform_",),
        ("paddle.nn.initializer.Uniform",),
        Wording(
            "The uniform initialiser has another range",
            "The default range is 0 to 1.",
            "The default range is -1 to 1.",
            "Fresh weights have negative values in the port.",
            "Pass the range explicitly.",
        ),
    ),
    Gap(
        "kaiming-initialisers-agree",
        Family.INITIALISATION,
        Status.VERIFIED,
        (),
        ("torch.nn.init.kaiming_uniform_", "torch.nn.init.kaiming_normal_", "torch.nn.init.trunc_normal_"),
        (
            *("paddle.nn.initializer.KaimingUniform", "paddle.nn.initializer.KaimingNormal"),
            "paddle.nn.initializer.TruncatedNormal",
        ),
        Wording(
            "Kaiming and truncated normal initialisers agree",
            "The fans are read from a weight [out, in].",
            "The distributions are the same; the fans of a weight [in, out] are read correctly.",
            "Nothing is to be seen. The arguments are spelt differently: a is negative_slope.",
            "Nothing is to be done.",
        ),
    ),
)
