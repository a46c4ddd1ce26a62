"""Every code that a cause can have: what it means, where it occurs, and an example.

Codes are stable: more are added, none is renamed. ``Cause`` refuses one that is not here, and the page of
codes in the documentation is made from this table.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of mistake."""

    meaning: str
    phases: tuple[str, ...]  # of the divergences it explains
    example: str


CODES: dict[str, Code] = {
    "weight.transposed": Code(
        "A weight lies the other way round in the port.",
        ("weights",),
        "a square Linear loaded without transposing it",
    ),
    "weight.missing": Code(
        "A weight of the reference has no counterpart in the port.",
        ("weights",),
        "a bias that the port does not have",
    ),
    "weight.extra": Code(
        "A weight of the port has no counterpart in the reference.",
        ("weights",),
        "an affine norm where the reference has none",
    ),
    "weight.mismatched": Code(
        "Corresponding weights have other values.", ("weights",), "one element edited after loading"
    ),
    "weight.permuted": Code(
        "Weights are exchanged, or their parts are in another order.",
        ("weights",),
        "q and k exchange their roles",
    ),
    "weight.tied": Code(
        "Weights are shared on one side and not on the other.",
        ("weights",),
        "a head that is not tied to the embedding",
    ),
    "weight.idle": Code(
        "A weight without a counterpart takes no part in this run.",
        ("weights",),
        "an auxiliary head that only training uses",
    ),
    "weight.computed": Code(
        "A table that the port computes differs from the reference's.",
        ("weights", "forward"),
        "another base of rotary angles",
    ),
    "config.epsilon": Code("An epsilon differs.", ("forward", "backward"), "LayerNorm with 1e-6 for 1e-5"),
    "config.momentum": Code(
        "The momentum of running statistics differs.",
        ("buffer", "forward"),
        "BatchNorm with momentum 0.1 where 0.9 is meant",
    ),
    "config.stride": Code(
        "A stride differs.", ("forward",), "stride 2 in the first instead of the second convolution"
    ),
    "config.padding": Code("A padding differs.", ("forward",), "padding 0 for 1"),
    "config.dilation": Code("A dilation differs.", ("forward",), "dilation 1 for 2"),
    "config.groups": Code(
        "The number of groups differs.", ("forward",), "a dense for a depthwise convolution"
    ),
    "config.kernel": Code("The size of a kernel or window differs.", ("forward",), "a pool of 2 for 3"),
    "config.heads": Code("Heads are split otherwise.", ("forward",), "4 heads of 16 for 8 of 8"),
    "config.slope": Code("A slope differs.", ("forward",), "LeakyReLU with 0.01 for 0.2"),
    "config.other": Code(
        "Another setting of a layer differs.", ("forward", "backward"), "a temperature of 1 for 0.7"
    ),
    "op.activation": Code("Another activation function.", ("forward",), "ReLU for ReLU6"),
    "op.approximation": Code(
        "Another form of the same function.", ("forward",), "GELU by tanh for the exact one"
    ),
    "op.padding_mode": Code("Borders are filled otherwise.", ("forward",), "zeros for reflection"),
    "op.pool_count": Code(
        "A mean over a window counts the border otherwise.",
        ("forward",),
        "exclusive=True for count_include_pad=True",
    ),
    "op.ceil_mode": Code("The size of an output is rounded otherwise.", ("forward",), "ceil_mode in a pool"),
    "op.align_corners": Code(
        "Positions are taken from corners or from centres.", ("forward",), "grid_sample's default"
    ),
    "op.interpolation": Code("Another interpolation.", ("forward",), "nearest for bilinear"),
    "op.axis": Code("An op goes along another axis.", ("forward",), "softmax over axis 1 for -1"),
    "op.scale": Code(
        "A factor differs or is missing.", ("forward", "backward"), "attention without its scale"
    ),
    "op.mask": Code(
        "Other places are masked.", ("forward",), "True that means keep for True that means hide"
    ),
    "op.missing": Code("The port does not apply an op.", ("forward",), "a residual that is not added"),
    "op.extra": Code(
        "The port applies an op that the reference does not.", ("forward",), "a second normalisation"
    ),
    "op.order": Code(
        "Ops, parts or operands in another order.", ("forward",), "norm after the residual for norm before"
    ),
    "op.kind": Code("Another op or formula.", ("forward", "loss"), "a maximum for a mean"),
    "op.bias": Code("A bias is added on one side only.", ("forward",), "Linear without its bias"),
    "mode.training": Code(
        "A layer is in training mode on one side only.", ("forward",), "a frozen BatchNorm"
    ),
    "random.dropout": Code(
        "Something is dropped at random on one side only, or at another rate.",
        ("forward",),
        "dropout that stays on in eval mode",
    ),
    "random.source": Code("Random numbers of the port's own.", ("forward",), "noise added to a latent"),
    "dtype.precision": Code(
        "One side computes in lower precision.", ("forward", "backward"), "a softmax in float16"
    ),
    "layout.permuted": Code(
        "The same values with their axes in another order.", ("forward", "data"), "NHWC for NCHW"
    ),
    "buffer.running_variance": Code(
        "The running variance is divided by n on one side and by n - 1 on the other.",
        ("buffer",),
        "BatchNorm of the two frameworks",
    ),
    "buffer.momentum": Code(
        "Running statistics are averaged with another weight.", ("buffer",), "momentum 0.99 for 0.9"
    ),
    "loss.reduction": Code(
        "Sum, mean or none; or a mean over another number.", ("loss",), "a sum for a mean"
    ),
    "loss.ignore_index": Code(
        "Labels are ignored on one side only, or counted in the mean.",
        ("loss",),
        "-100 counted in the denominator",
    ),
    "loss.label_smoothing": Code("Another label smoothing.", ("loss",), "0 for 0.1"),
    "loss.weight": Code("Classes or samples weigh otherwise.", ("loss",), "no class weights"),
    "loss.beta": Code(
        "Where a smooth loss turns from square to straight differs.", ("loss",), "Huber for smooth L1"
    ),
    "loss.input": Code("The loss expects something else.", ("loss",), "probabilities for logits"),
    "grad.scale": Code(
        "A gradient is a multiple of the reference's.", ("backward", "gradient"), "a hook that halves it"
    ),
    "grad.detached": Code(
        "No gradient passes on one side.", ("backward", "gradient"), "a detach before a layer"
    ),
    "grad.accumulated": Code(
        "Gradients of more or fewer passes are added up.", ("gradient",), "gradients that are not cleared"
    ),
    "grad.clip": Code(
        "Gradients are clipped otherwise.", ("gradient", "optimizer"), "by value for by global norm"
    ),
    "grad.tie": Code(
        "Equal values send their gradient different ways.", ("backward",), "the maximum of two equal numbers"
    ),
    "grad.function": Code(
        "A function's own backward differs.", ("backward",), "a straight-through estimator"
    ),
    "optim.kind": Code("Another rule of update.", ("optimizer",), "SGD for Adam"),
    "optim.weight_decay": Code(
        "Weight decay differs: how much, coupled or not, for which parameters.",
        ("optimizer",),
        "L2 for decoupled decay",
    ),
    "optim.momentum": Code("Momentum, dampening or Nesterov differ.", ("optimizer",), "0.9 for 0.99"),
    "optim.epsilon": Code(
        "The optimizer's epsilon differs, or its place.", ("optimizer",), "inside of the root for outside"
    ),
    "optim.betas": Code("The betas differ.", ("optimizer",), "0.95 for 0.999"),
    "optim.lr_group": Code(
        "A group of parameters has another rate.", ("optimizer", "lr"), "a factor taken for a rate"
    ),
    "optim.update": Code(
        "The update differs in another way.", ("optimizer",), "parameters that are not updated"
    ),
    "lr.value": Code("The learning rate differs.", ("lr",), "half the rate"),
    "lr.offset": Code(
        "The schedule is some steps early or late.", ("lr",), "stepped before the first update"
    ),
    "lr.constant": Code(
        "The learning rate never changes on one side.", ("lr",), "an optimizer that was given a number"
    ),
    "lr.end": Code("The schedule ends at another value.", ("lr",), "end_lr=1e-4 for 0"),
    "data.order": Code("The same samples in another order.", ("data",), "a loader that shuffles"),
    "data.length": Code(
        "Another number of samples or another batch size.", ("data",), "a last batch that is dropped"
    ),
    "data.normalisation": Code("A scale and an offset.", ("data",), "ImageNet's constants for 0.5"),
    "data.channel_order": Code("Channels are reversed.", ("data",), "BGR for RGB"),
    "data.resize": Code("Pictures are resampled otherwise.", ("data",), "antialiasing on one side"),
    "data.crop": Code("Pictures are cut out elsewhere or mirrored.", ("data",), "a corner for the centre"),
    "data.label": Code("Labels by another numbering.", ("data",), "classes from 1 for from 0"),
    "metric.unit": Code("Percent for a fraction, or another factor.", ("metric",), "76.1 for 0.761"),
    "metric.topk": Code("Hits are counted among another number.", ("metric",), "top 5 for top 1"),
    "metric.value": Code("The metric differs in another way.", ("metric",), "batches weighed alike"),
    "init.distribution": Code("Another distribution.", ("init",), "normal for uniform"),
    "init.scale": Code("The same distribution with another scale.", ("init",), "Xavier for Kaiming"),
    "init.bias": Code("A bias begins otherwise.", ("init",), "zeros for uniform"),
    "dist.reduction": Code(
        "Gradients of ranks are summed on one side and averaged on the other.",
        ("gradient",),
        "a sum over 2 ranks",
    ),
    "dist.batch_scale": Code(
        "Rate or loss is scaled by the number of ranks on one side only.",
        ("lr", "loss"),
        "a rate that is not multiplied",
    ),
    "dist.batch_norm": Code(
        "Statistics of a batch are of one rank on one side, of all ranks on the other.",
        ("forward",),
        "BatchNorm for SyncBatchNorm",
    ),
    "dist.sampler": Code(
        "Ranks get another share of the data.", ("data",), "both ranks read the same samples"
    ),
    "dist.rank": Code("Ranks have drifted apart.", ("weights", "gradient"), "buffers that are not broadcast"),
}
