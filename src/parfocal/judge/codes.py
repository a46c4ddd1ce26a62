"""Every code that a cause can have: what it means, where it occurs, and an example.

Codes are stable: more are added, none is renamed. ``Cause`` refuses one that is not here, and the page of
codes in the documentation is made from this table.
"""

from __future__ import annotations

from dataclasses import dataclass

from parfocal.phrases import phrase


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of mistake."""

    meaning: str
    phases: tuple[str, ...]  # of the divergences it explains
    example: str


CODES: dict[str, Code] = {
    "weight.transposed": Code(
        phrase("A weight lies the other way round in the port."),
        ("weights",),
        phrase("a square Linear loaded without transposing it"),
    ),
    "weight.missing": Code(
        phrase("A weight of the reference has no counterpart in the port."),
        ("weights",),
        phrase("a bias that the port does not have"),
    ),
    "weight.extra": Code(
        phrase("A weight of the port has no counterpart in the reference."),
        ("weights",),
        phrase("an affine norm where the reference has none"),
    ),
    "weight.mismatched": Code(
        phrase("Corresponding weights have other values."),
        ("weights",),
        phrase("one element edited after loading"),
    ),
    "weight.permuted": Code(
        phrase("Weights are exchanged, or their parts are in another order."),
        ("weights",),
        phrase("q and k exchange their roles"),
    ),
    "weight.tied": Code(
        phrase("Weights are shared on one side and not on the other."),
        ("weights",),
        phrase("a head that is not tied to the embedding"),
    ),
    "weight.idle": Code(
        phrase("A weight without a counterpart takes no part in this run."),
        ("weights",),
        phrase("an auxiliary head that only training uses"),
    ),
    "weight.computed": Code(
        phrase("A table that the port computes differs from the reference's."),
        ("weights", "forward"),
        phrase("another base of rotary angles"),
    ),
    "config.epsilon": Code(
        phrase("An epsilon differs."), ("forward", "backward"), phrase("LayerNorm with 1e-6 for 1e-5")
    ),
    "config.momentum": Code(
        phrase("The momentum of running statistics differs."),
        ("buffer", "forward"),
        phrase("BatchNorm with momentum 0.1 where 0.9 is meant"),
    ),
    "config.stride": Code(
        phrase("A stride differs."),
        ("forward",),
        phrase("stride 2 in the first instead of the second convolution"),
    ),
    "config.padding": Code(phrase("A padding differs."), ("forward",), phrase("padding 0 for 1")),
    "config.dilation": Code(phrase("A dilation differs."), ("forward",), phrase("dilation 1 for 2")),
    "config.groups": Code(
        phrase("The number of groups differs."), ("forward",), phrase("a dense for a depthwise convolution")
    ),
    "config.kernel": Code(
        phrase("The size of a kernel or window differs."), ("forward",), phrase("a pool of 2 for 3")
    ),
    "config.heads": Code(
        phrase("Heads are split otherwise."), ("forward",), phrase("4 heads of 16 for 8 of 8")
    ),
    "config.slope": Code(phrase("A slope differs."), ("forward",), phrase("LeakyReLU with 0.01 for 0.2")),
    "config.other": Code(
        phrase("Another setting of a layer differs."),
        ("forward", "backward"),
        phrase("a temperature of 1 for 0.7"),
    ),
    "op.activation": Code(phrase("Another activation function."), ("forward",), phrase("ReLU for ReLU6")),
    "op.approximation": Code(
        phrase("Another form of the same function."), ("forward",), phrase("GELU by tanh for the exact one")
    ),
    "op.padding_mode": Code(
        phrase("Borders are filled otherwise."), ("forward",), phrase("zeros for reflection")
    ),
    "op.pool_count": Code(
        phrase("A mean over a window counts the border otherwise."),
        ("forward",),
        phrase("exclusive=True for count_include_pad=True"),
    ),
    "op.ceil_mode": Code(
        phrase("The size of an output is rounded otherwise."), ("forward",), phrase("ceil_mode in a pool")
    ),
    "op.align_corners": Code(
        phrase("Positions are taken from corners or from centres."),
        ("forward",),
        phrase("grid_sample's default"),
    ),
    "op.interpolation": Code(phrase("Another interpolation."), ("forward",), phrase("nearest for bilinear")),
    "op.axis": Code(
        phrase("An op goes along another axis."), ("forward",), phrase("softmax over axis 1 for -1")
    ),
    "op.scale": Code(
        phrase("A factor differs or is missing."),
        ("forward", "backward"),
        phrase("attention without its scale"),
    ),
    "op.mask": Code(
        phrase("Other places are masked."),
        ("forward",),
        phrase("True that means keep for True that means hide"),
    ),
    "op.missing": Code(
        phrase("The port does not apply an op."), ("forward",), phrase("a residual that is not added")
    ),
    "op.extra": Code(
        phrase("The port applies an op that the reference does not."),
        ("forward",),
        phrase("a second normalisation"),
    ),
    "op.order": Code(
        phrase("Ops, parts or operands in another order."),
        ("forward",),
        phrase("norm after the residual for norm before"),
    ),
    "op.kind": Code(phrase("Another op or formula."), ("forward", "loss"), phrase("a maximum for a mean")),
    "op.bias": Code(
        phrase("A bias is added on one side only."), ("forward",), phrase("Linear without its bias")
    ),
    "mode.training": Code(
        phrase("A layer is in training mode on one side only."), ("forward",), phrase("a frozen BatchNorm")
    ),
    "random.dropout": Code(
        phrase("Something is dropped at random on one side only, or at another rate."),
        ("forward",),
        phrase("dropout that stays on in eval mode"),
    ),
    "random.source": Code(
        phrase("Random numbers of the port's own."), ("forward",), phrase("noise added to a latent")
    ),
    "dtype.precision": Code(
        phrase("One side computes in lower precision."),
        ("forward", "backward"),
        phrase("a softmax in float16"),
    ),
    "dtype.bits": Code(
        phrase("Bit patterns are taken for numbers."),
        ("data", "metric"),
        phrase("bfloat16 read as uint16"),
    ),
    "layout.permuted": Code(
        phrase("The same values with their axes in another order."),
        ("forward", "data"),
        phrase("NHWC for NCHW"),
    ),
    "buffer.running_variance": Code(
        phrase("The running variance is divided by n on one side and by n - 1 on the other."),
        ("buffer",),
        phrase("BatchNorm of the two frameworks"),
    ),
    "buffer.momentum": Code(
        phrase("Running statistics are averaged with another weight."),
        ("buffer",),
        phrase("momentum 0.99 for 0.9"),
    ),
    "loss.reduction": Code(
        phrase("Sum, mean or none; or a mean over another number."), ("loss",), phrase("a sum for a mean")
    ),
    "loss.ignore_index": Code(
        phrase("Labels are ignored on one side only, or counted in the mean."),
        ("loss",),
        phrase("-100 counted in the denominator"),
    ),
    "loss.label_smoothing": Code(phrase("Another label smoothing."), ("loss",), phrase("0 for 0.1")),
    "loss.weight": Code(phrase("Classes or samples weigh otherwise."), ("loss",), phrase("no class weights")),
    "loss.beta": Code(
        phrase("Where a smooth loss turns from square to straight differs."),
        ("loss",),
        phrase("Huber for smooth L1"),
    ),
    "loss.offset": Code(
        phrase("A constant is added to the loss, of which no gradient tells."),
        ("loss",),
        phrase("0.001 added"),
    ),
    "loss.input": Code(
        phrase("The loss expects something else."), ("loss",), phrase("probabilities for logits")
    ),
    "grad.scale": Code(
        phrase("A gradient is a multiple of the reference's."),
        ("backward", "gradient"),
        phrase("a hook that halves it"),
    ),
    "grad.detached": Code(
        phrase("No gradient passes on one side."), ("backward", "gradient"), phrase("a detach before a layer")
    ),
    "grad.accumulated": Code(
        phrase("Gradients of more or fewer passes are added up."),
        ("gradient",),
        phrase("gradients that are not cleared"),
    ),
    "grad.clip": Code(
        phrase("Gradients are clipped otherwise."),
        ("gradient", "optimizer"),
        phrase("by value for by global norm"),
    ),
    "grad.tie": Code(
        phrase("Equal values send their gradient different ways."),
        ("backward",),
        phrase("the maximum of two equal numbers"),
    ),
    "grad.function": Code(
        phrase("A function's own backward differs."), ("backward",), phrase("a straight-through estimator")
    ),
    "optim.kind": Code(phrase("Another rule of update."), ("optimizer",), phrase("SGD for Adam")),
    "optim.weight_decay": Code(
        phrase("Weight decay differs: how much, coupled or not, for which parameters."),
        ("optimizer",),
        phrase("L2 for decoupled decay"),
    ),
    "optim.momentum": Code(
        phrase("Momentum, dampening or Nesterov differ."), ("optimizer",), phrase("0.9 for 0.99")
    ),
    "optim.epsilon": Code(
        phrase("The optimizer's epsilon differs, or its place."),
        ("optimizer",),
        phrase("inside of the root for outside"),
    ),
    "optim.betas": Code(phrase("The betas differ."), ("optimizer",), phrase("0.95 for 0.999")),
    "optim.lr_group": Code(
        phrase("A group of parameters has another rate."),
        ("optimizer", "lr"),
        phrase("a factor taken for a rate"),
    ),
    "optim.update": Code(
        phrase("The update differs in another way."),
        ("optimizer",),
        phrase("parameters that are not updated"),
    ),
    "lr.value": Code(phrase("The learning rate differs."), ("lr",), phrase("half the rate")),
    "lr.offset": Code(
        phrase("The schedule is some steps early or late."),
        ("lr",),
        phrase("stepped before the first update"),
    ),
    "lr.constant": Code(
        phrase("The learning rate never changes on one side."),
        ("lr",),
        phrase("an optimizer that was given a number"),
    ),
    "lr.end": Code(phrase("The schedule ends at another value."), ("lr",), phrase("end_lr=1e-4 for 0")),
    "data.order": Code(
        phrase("The same samples in another order."), ("data",), phrase("a loader that shuffles")
    ),
    "data.length": Code(
        phrase("Another number of samples or another batch size."),
        ("data",),
        phrase("a last batch that is dropped"),
    ),
    "data.subset": Code(
        phrase("As many samples of the same data, and others."), ("data",), phrase("another split")
    ),
    "data.normalisation": Code(
        phrase("A scale and an offset."), ("data",), phrase("ImageNet's constants for 0.5")
    ),
    "data.channel_order": Code(phrase("Channels are reversed."), ("data",), phrase("BGR for RGB")),
    "data.resize": Code(
        phrase("Pictures are resampled otherwise."), ("data",), phrase("antialiasing on one side")
    ),
    "data.colour": Code(
        phrase("Colours are adjusted otherwise."), ("data",), phrase("a hue that another library turns")
    ),
    "data.crop": Code(
        phrase("Pictures are cut out elsewhere or mirrored."), ("data",), phrase("a corner for the centre")
    ),
    "data.random": Code(
        phrase("Random changes of samples are of another kind or size."),
        ("data",),
        phrase("a crop of another range of sizes"),
    ),
    "data.setting": Code(
        phrase("A step of the data is set otherwise."), ("data",), phrase("a picture resized to 256 for 224")
    ),
    "data.label": Code(
        phrase("Labels by another numbering."), ("data",), phrase("classes from 1 for from 0")
    ),
    "metric.unit": Code(
        phrase("Percent for a fraction, or another factor."), ("metric",), phrase("76.1 for 0.761")
    ),
    "metric.topk": Code(
        phrase("Hits are counted among another number."), ("metric",), phrase("top 5 for top 1")
    ),
    "metric.tie": Code(
        phrase("Equal scores are put in another order."), ("metric",), phrase("the last of equal scores wins")
    ),
    "metric.value": Code(
        phrase("The metric differs in another way."), ("metric",), phrase("batches weighed alike")
    ),
    "init.distribution": Code(phrase("Another distribution."), ("init",), phrase("normal for uniform")),
    "init.scale": Code(
        phrase("The same distribution with another scale."), ("init",), phrase("Xavier for Kaiming")
    ),
    "init.bias": Code(phrase("A bias begins otherwise."), ("init",), phrase("zeros for uniform")),
    "dist.reduction": Code(
        phrase("Gradients of ranks are summed on one side and averaged on the other."),
        ("gradient",),
        phrase("a sum over 2 ranks"),
    ),
    "dist.batch_scale": Code(
        phrase("Rate or loss is scaled by the number of ranks on one side only."),
        ("lr", "loss"),
        phrase("a rate that is not multiplied"),
    ),
    "dist.batch_norm": Code(
        phrase("Statistics of a batch are of one rank on one side, of all ranks on the other."),
        ("forward",),
        phrase("BatchNorm for SyncBatchNorm"),
    ),
    "dist.sampler": Code(
        phrase("Ranks get another share of the data."), ("data",), phrase("both ranks read the same samples")
    ),
    "dist.rank": Code(
        phrase("Ranks have drifted apart."), ("weights", "gradient"), phrase("buffers that are not broadcast")
    ),
}
