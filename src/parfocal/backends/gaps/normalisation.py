"""Differences of normalisation layers."""

from __future__ import annotations

from parfocal.backends.gaps.entry import Family, Gap, Status, Symptom, Wording, ranked

_TORCH = ranked("torch.nn.BatchNorm{}d")
_PADDLE = ranked("paddle.nn.BatchNorm{}D")
_FUNCTIONS = ("torch.nn.functional.batch_norm",), ("paddle.nn.functional.batch_norm",)

GAPS: tuple[Gap, ...] = (
    Gap(
        "batch-norm-momentum",
        Family.NORMALISATION,
        Status.VERIFIED,
        (Symptom.EVALUATION,),
        (*_TORCH, *_FUNCTIONS[0]),
        (*_PADDLE, *_FUNCTIONS[1]),
        Wording(
            "The momentum of BatchNorm means the opposite",
            "momentum is the weight of the new value; the default is 0.1.",
            "momentum is the weight of the old value; the default is 0.9.",
            "Outputs in training agree, but the running statistics differ after one step.",
            "Pass momentum = 1 - the momentum of torch.",
        ),
    ),
    Gap(
        "batch-norm-running-variance",
        Family.NORMALISATION,
        Status.VERIFIED,
        (Symptom.EVALUATION,),
        (*_TORCH, *_FUNCTIONS[0]),
        (*_PADDLE, *_FUNCTIONS[1]),
        Wording(
            "The running variance of BatchNorm uses another estimate",
            "The running variance takes the unbiased estimate, with the factor n / (n - 1).",
            "The running variance takes the biased estimate.",
            "Training agrees and evaluation after training differs; the ratio of the new parts of the"
            " variances is n / (n - 1) for n values a channel.",
            "No argument changes it. Rescale the variance when comparing or exporting, or write it down.",
        ),
    ),
    Gap(
        "batch-norm-positions",
        Family.NORMALISATION,
        Status.VERIFIED,
        (Symptom.FORWARD, Symptom.EVALUATION),
        _TORCH,
        _PADDLE,
        Wording(
            "The second and third argument of BatchNorm are exchanged",
            "The order is (num_features, eps, momentum).",
            "The order is (num_features, momentum, epsilon).",
            "A number given by position becomes the other setting.",
            "Pass both by keyword.",
        ),
    ),
    Gap(
        "batch-norm-epsilon-keyword",
        Family.NORMALISATION,
        Status.VERIFIED,
        (Symptom.ERROR,),
        _TORCH,
        _PADDLE,
        Wording(
            "BatchNorm does not know eps",
            "The keyword is eps.",
            "The keyword is epsilon, and eps raises TypeError. LayerNorm and GroupNorm take both.",
            "Building the layer raises.",
            "Write epsilon.",
        ),
    ),
    Gap(
        "batch-norm-single-value",
        Family.NORMALISATION,
        Status.VERIFIED,
        (Symptom.TRAINING,),
        _TORCH,
        _PADDLE,
        Wording(
            "A single value a channel is not refused in training",
            "BatchNorm raises ValueError for one value a channel in training.",
            "BatchNorm returns values without an error.",
            "A last batch with one sample stops the reference only.",
            "Drop the last batch if it has one sample.",
        ),
    ),
    Gap(
        "batch-norm-statistics-options",
        Family.NORMALISATION,
        Status.VERIFIED,
        (Symptom.EVALUATION,),
        _TORCH,
        _PADDLE,
        Wording(
            "Two modes of running statistics have no counterpart",
            "track_running_stats=False uses the batch in evaluation too, and momentum=None averages over all"
            " batches.",
            "There is no track_running_stats, and momentum=None raises TypeError when the layer runs.",
            "Evaluation uses running statistics where the reference uses those of the batch.",
            "Pass use_global_stats=False to use the batch in evaluation too. Write a layer of your own for"
            " momentum=None.",
        ),
    ),
    Gap(
        "batch-norm-frozen",
        Family.NORMALISATION,
        Status.VERIFIED,
        (Symptom.TRAINING,),
        _TORCH,
        _PADDLE,
        Wording(
            "A frozen BatchNorm is written in two ways",
            "A BatchNorm is frozen by calling eval() on it after every train().",
            "use_global_stats=True freezes it also in training; eval() works as in torch.",
            "One side follows the batch and the other does not.",
            "Use either of the two, on both sides.",
        ),
    ),
    Gap(
        "norm-epsilon-value",
        Family.NORMALISATION,
        Status.VERIFIED,
        (Symptom.FORWARD,),
        ("torch.nn.LayerNorm", "torch.nn.GroupNorm", "torch.nn.functional.layer_norm"),
        ("paddle.nn.LayerNorm", "paddle.nn.GroupNorm", "paddle.nn.functional.layer_norm"),
        Wording(
            "A wrong epsilon is easily overlooked",
            "The default of LayerNorm is 1e-5.",
            "The default of LayerNorm is 1e-5 too, but ports often write another, such as 1e-12 or 1e-6.",
            "Outputs differ by about epsilon / (2 variance): 1e-5 where the variance is near 1, and more"
            " where it is small.",
            "Pass epsilon explicitly, with the value of the reference.",
        ),
    ),
    Gap(
        "rms-norm",
        Family.NORMALISATION,
        Status.VERIFIED,
        (Symptom.FORWARD,),
        ("torch.nn.RMSNorm", "torch.nn.functional.rms_norm"),
        ("paddle.nn.functional.rms_norm", "paddle.incubate.nn.functional.fused_rms_norm"),
        Wording(
            "There is no layer RMSNorm",
            "nn.RMSNorm exists. eps=None stands for the smallest step of the dtype, 1.19e-7 in float32.",
            "There is no paddle.nn.RMSNorm, only functions with an epsilon of their own.",
            "Ports write the layer by hand, often with another epsilon.",
            "Write a layer with one weight that returns"
            " x * paddle.rsqrt(x.square().mean(-1, keepdim=True) + epsilon) * self.weight, with the"
            " reference's epsilon.",
        ),
        absent=("torch.nn.RMSNorm",),
    ),
)
