"""What each cause looks like, how it is proved and what to do about it: the register's guide for people.

One entry for every code of ``parfocal.judge.codes``; the page of codes in the documentation shows both.
"""

from __future__ import annotations

from dataclasses import dataclass

from parfocal.phrases import phrase


@dataclass(frozen=True, slots=True)
class CodeGuide:
    """What one sees, how the cause is shown to be the cause, what to write."""

    symptom: str
    proof: str
    fix: str


# How causes are proved, where they are: ``evidence.EVIDENCE`` says where they are only likely.
COPIED = phrase(
    "The weights are copied in the other way and the module is run again: it then "
    "gives the reference's output."
)
VALUES = phrase("The values of both sides are compared after both were brought into one layout.")
STRUCTURE = phrase(
    "The tensors of both models are paired; the run shows whether what is left over takes part."
)
REBUILT = phrase(
    "The port's layer is built anew with the reference's setting and replayed on the "
    "same input: its score falls to the noise."
)
REPLAYED = phrase(
    "The call is replayed with this one thing changed: its score falls to the noise, "
    "and calls that were right stay right."
)
REPEATED = phrase(
    "The call is repeated on the same input, and with other random numbers: what "
    "changes from one time to the next is random."
)
GRADIENT = phrase(
    "The backward pass is replayed from the reference's output gradient, and the "
    "gradients of both sides are related by a factor, a place or a rule."
)
FORMULA = phrase(
    "The value is computed again from the same inputs by each known formula; the "
    "port's value is that of the formula named."
)
SOLVED = phrase(
    "The update is computed again in float64 from the recorded parameters, gradients "
    "and slots; only this setting gives the port's update."
)
CURVES = phrase("The two curves of the learning rate are compared step by step, also shifted and scaled.")
SAMPLES = phrase(
    "The port's samples are turned into the reference's by this one change, and by no other that was tried."
)
SAID = phrase(
    "Both sides' steps are read, and settings of one name compared; nothing is run without the difference."
)
SEEDS = phrase(
    "Models are built with several seeds, and the values of every tensor are tested "
    "as samples of two distributions."
)
RANKS = phrase("The recorded ranks are compared with each other and with the other side, one by one.")
BUFFERS = phrase(
    "The buffer after the step is computed again from the batch's statistics by both conventions."
)

# What several causes look like.
FOLLOWS = phrase("The output of one layer differs, and everything behind it follows.")
OTHER_SHAPE = phrase("The output has another shape, or the same shape and other values everywhere.")
BETWEEN_LAYERS = phrase("No layer is wrong on the reference's inputs; the code between the layers is.")

GUIDES: dict[str, CodeGuide] = {
    "weight.transposed": CodeGuide(
        phrase("Loading succeeds, and the layer's output is wrong everywhere."),
        COPIED,
        phrase("Transpose the weight when it is loaded: by the kind of the layer, not by its shape."),
    ),
    "weight.missing": CodeGuide(
        phrase("A tensor of the checkpoint is left over."),
        STRUCTURE,
        phrase("Give the port's layer this parameter, or register it."),
    ),
    "weight.extra": CodeGuide(
        phrase("A tensor of the port keeps its initial values."),
        STRUCTURE,
        phrase(
            "Switch the parameter off (weight_attr=False, bias_attr=False), or fill it with "
            "what changes nothing."
        ),
    ),
    "weight.mismatched": CodeGuide(
        phrase("The same layer has other values on both sides before anything ran."),
        VALUES,
        phrase("Load the same checkpoint on both sides, and change nothing after loading."),
    ),
    "weight.permuted": CodeGuide(
        phrase("All shapes fit, and the outputs differ."),
        COPIED,
        phrase("Change the order in which the parts are stored or used."),
    ),
    "weight.tied": CodeGuide(
        phrase("Both sides agree until the first update, then one copy moves without the other."),
        STRUCTURE,
        phrase("Use one parameter in both places, or two, as the reference does."),
    ),
    "weight.idle": CodeGuide(
        phrase("A tensor is left over, and no output depends on it."),
        STRUCTURE,
        phrase("Nothing is to be done for this run; look at it again in the mode that uses it."),
    ),
    "weight.computed": CodeGuide(
        phrase("A buffer that is computed rather than loaded differs."),
        VALUES,
        phrase("Compute the table by the reference's formula."),
    ),
    "config.epsilon": CodeGuide(
        phrase("The output of a norm differs by little, more where the variance is small."),
        REBUILT,
        phrase("Pass the reference's epsilon to the constructor."),
    ),
    "config.momentum": CodeGuide(
        phrase("Training agrees, evaluation after training does not."),
        REBUILT,
        phrase("Pass the momentum by the framework's own convention: paddle's is 1 minus torch's."),
    ),
    "config.stride": CodeGuide(
        OTHER_SHAPE, REBUILT, phrase("Pass the reference's stride to the constructor.")
    ),
    "config.padding": CodeGuide(
        phrase("The output has another size, or differs at its borders."),
        REBUILT,
        phrase("Pass the reference's padding to the constructor."),
    ),
    "config.dilation": CodeGuide(
        OTHER_SHAPE, REBUILT, phrase("Pass the reference's dilation to the constructor.")
    ),
    "config.groups": CodeGuide(
        phrase("The weight has another shape, or every channel differs."),
        REBUILT,
        phrase("Pass the reference's number of groups."),
    ),
    "config.kernel": CodeGuide(
        OTHER_SHAPE, REBUILT, phrase("Pass the reference's size of the kernel or window.")
    ),
    "config.heads": CodeGuide(
        phrase("Weights fit, and the attention's output differs everywhere."),
        REBUILT,
        phrase("Split into the reference's number of heads."),
    ),
    "config.slope": CodeGuide(
        phrase("Only values below zero differ."), REBUILT, phrase("Pass the reference's slope.")
    ),
    "config.other": CodeGuide(
        FOLLOWS, REBUILT, phrase("Pass the reference's value of the setting that is named.")
    ),
    "op.activation": CodeGuide(
        phrase("Only values of one sign or beyond a bound differ."),
        REPLAYED,
        phrase("Use the activation that the reference uses."),
    ),
    "op.approximation": CodeGuide(
        phrase("The output differs by little, and smoothly."),
        REPLAYED,
        phrase("Choose the reference's form, e.g. approximate=False."),
    ),
    "op.padding_mode": CodeGuide(
        phrase("Only the borders differ."), REPLAYED, phrase("Fill the border as the reference does.")
    ),
    "op.pool_count": CodeGuide(
        phrase("Only the borders differ, by a factor."),
        REPLAYED,
        phrase("Pass exclusive=False where torch has count_include_pad=True, its default."),
    ),
    "op.ceil_mode": CodeGuide(
        phrase("The output has one row or column more or fewer."),
        REPLAYED,
        phrase("Pass the reference's ceil_mode."),
    ),
    "op.align_corners": CodeGuide(
        phrase("The resized output differs everywhere but in the middle."),
        REPLAYED,
        phrase("Pass align_corners: the defaults of grid_sample differ."),
    ),
    "op.interpolation": CodeGuide(
        phrase("The resized output differs everywhere."),
        REPLAYED,
        phrase("Pass the reference's mode of interpolation."),
    ),
    "op.axis": CodeGuide(
        phrase("The shape is right, and the values are those of another axis."),
        REPLAYED,
        phrase("Name the reference's axis."),
    ),
    "op.scale": CodeGuide(
        phrase("The output is a multiple of the reference's."),
        REPLAYED,
        phrase("Multiply by the factor that is named, or leave it out."),
    ),
    "op.mask": CodeGuide(
        phrase("Rows that look at masked places differ."),
        REPLAYED,
        phrase("Turn the mask round, or build it as the reference does."),
    ),
    "op.missing": CodeGuide(BETWEEN_LAYERS, REPLAYED, phrase("Add the op that is named.")),
    "op.extra": CodeGuide(BETWEEN_LAYERS, REPLAYED, phrase("Leave the op out.")),
    "op.order": CodeGuide(
        BETWEEN_LAYERS, REPLAYED, phrase("Write the ops, parts or operands in the reference's order.")
    ),
    "op.kind": CodeGuide(BETWEEN_LAYERS, REPLAYED, phrase("Write the reference's op or formula.")),
    "op.bias": CodeGuide(
        phrase("The output differs by a constant in each channel."),
        REPLAYED,
        phrase("Switch the bias on or off as the reference has it."),
    ),
    "mode.training": CodeGuide(
        phrase("A BatchNorm or dropout behaves otherwise though the model is in the same mode."),
        REBUILT,
        phrase("Call eval() or train() on this layer as the reference does."),
    ),
    "random.dropout": CodeGuide(
        phrase("The output changes from run to run, or zeros are at other places."),
        REPEATED,
        phrase("Pass training=self.training, and the reference's rate."),
    ),
    "random.source": CodeGuide(
        phrase("The output changes from run to run."),
        REPEATED,
        phrase("Hand the random numbers over, or seed them and take them from one source."),
    ),
    "dtype.precision": CodeGuide(
        phrase("The error is that of a shorter number format, everywhere."),
        REPLAYED,
        phrase("Compute in the reference's dtype."),
    ),
    "dtype.bits": CodeGuide(
        phrase("Values are whole numbers from 0 to 65535 that have nothing to do with the reference's."),
        SAMPLES,
        phrase("Cast to float32 before the values become an array."),
    ),
    "layout.permuted": CodeGuide(
        phrase("The same values lie at other places."),
        REPLAYED,
        phrase("Transpose before the layer, or pass data_format."),
    ),
    "buffer.running_variance": CodeGuide(
        phrase("Running variances differ by n / (n - 1) after a step of training."),
        BUFFERS,
        phrase("A convention of the frameworks: expect it, or correct the buffer in a layer of your own."),
    ),
    "buffer.momentum": CodeGuide(
        phrase("Running statistics move faster or slower than the reference's."),
        BUFFERS,
        phrase("Pass the momentum by the framework's own convention."),
    ),
    "loss.reduction": CodeGuide(
        phrase("The loss is a multiple of the reference's."),
        FORMULA,
        phrase("Pass the reference's reduction."),
    ),
    "loss.ignore_index": CodeGuide(
        phrase("The loss differs only where labels are ignored."),
        FORMULA,
        phrase("Pass ignore_index, and divide by the labels that count."),
    ),
    "loss.label_smoothing": CodeGuide(
        phrase("The loss differs, also of perfect predictions."),
        FORMULA,
        phrase("Pass the reference's label_smoothing."),
    ),
    "loss.weight": CodeGuide(
        phrase("The loss differs by class or by sample."),
        FORMULA,
        phrase("Pass the reference's weights, and divide by their sum as it does."),
    ),
    "loss.beta": CodeGuide(
        phrase("The loss differs for small or for large errors only."),
        FORMULA,
        phrase("Pass the reference's beta or delta."),
    ),
    "loss.offset": CodeGuide(
        phrase("The loss differs by the same number for any batch, and all gradients agree."),
        FORMULA,
        phrase("Leave the constant out, or add it on both sides."),
    ),
    "loss.input": CodeGuide(
        phrase("The loss is far off, or finite where it should not be."),
        FORMULA,
        phrase("Give the loss logits or probabilities as it expects."),
    ),
    "grad.scale": CodeGuide(
        phrase("The forward pass agrees, a gradient is a multiple."),
        GRADIENT,
        phrase("Remove the factor, or apply it as the reference does."),
    ),
    "grad.detached": CodeGuide(
        phrase("The forward pass agrees, and some parameters have no gradient or too small a one."),
        GRADIENT,
        phrase("Remove the detach or the no_grad, or add the reference's."),
    ),
    "grad.accumulated": CodeGuide(
        phrase("Gradients grow from step to step."),
        GRADIENT,
        phrase("Clear the gradients where the reference does."),
    ),
    "grad.clip": CodeGuide(
        phrase("Gradients agree before clipping and differ after it."),
        FORMULA,
        phrase("Clip by the reference's rule and bound."),
    ),
    "grad.tie": CodeGuide(
        phrase("Gradients differ at places with equal values only."),
        GRADIENT,
        phrase("Nothing is wrong: try inputs without equal values."),
    ),
    "grad.function": CodeGuide(
        phrase("The forward pass agrees, the gradient has another form."),
        GRADIENT,
        phrase("Write the reference's backward."),
    ),
    "optim.kind": CodeGuide(
        phrase("The first update differs, with equal gradients."),
        SOLVED,
        phrase("Use the optimizer that the reference uses."),
    ),
    "optim.weight_decay": CodeGuide(
        phrase("The update differs in proportion to the parameter."),
        SOLVED,
        phrase(
            "Pass the decay and its kind for the same parameters: AdamW for decoupled, weight_decay for L2."
        ),
    ),
    "optim.momentum": CodeGuide(
        phrase("The first update agrees, later ones do not."),
        SOLVED,
        phrase("Pass the reference's momentum, dampening and nesterov."),
    ),
    "optim.epsilon": CodeGuide(
        phrase("Updates of parameters with small gradients differ."),
        SOLVED,
        phrase("Pass the reference's epsilon."),
    ),
    "optim.betas": CodeGuide(
        phrase("The first update agrees, later ones do not."), SOLVED, phrase("Pass the reference's betas.")
    ),
    "optim.lr_group": CodeGuide(
        phrase("Updates of one group of parameters are a multiple."),
        SOLVED,
        phrase("Give the group the reference's rate: paddle takes a factor there, torch a rate."),
    ),
    "optim.update": CodeGuide(
        phrase("Parameters differ after the update, with equal gradients and rates."),
        SOLVED,
        phrase("Look at what the message names: which parameters, and what their update is instead."),
    ),
    "lr.value": CodeGuide(
        phrase("The learning rate differs from the first step on."),
        CURVES,
        phrase("Pass the reference's learning rate."),
    ),
    "lr.offset": CodeGuide(
        phrase("The curves have one form, and one is early."),
        CURVES,
        phrase("Call scheduler.step() where the reference does."),
    ),
    "lr.constant": CodeGuide(
        phrase("One curve is flat."),
        CURVES,
        phrase("Give the scheduler itself to the optimizer, and step it."),
    ),
    "lr.end": CodeGuide(
        phrase("The curves part towards the end."),
        CURVES,
        phrase("Pass the reference's last value and number of steps."),
    ),
    "data.order": CodeGuide(
        phrase("Batches differ, the set of samples does not."),
        SAMPLES,
        phrase("Take shuffle out, or feed both sides the same saved batches."),
    ),
    "data.length": CodeGuide(
        phrase("One side runs out first, or its batches are larger."),
        SAMPLES,
        phrase("Use the reference's batch size, drop_last and list of samples."),
    ),
    "data.subset": CodeGuide(
        phrase("Some samples of the port are among the reference's at other places, the others are not."),
        SAMPLES,
        phrase("Give both sides the same list of files: the same split, the same draw of a subset."),
    ),
    "data.normalisation": CodeGuide(
        phrase("Inputs differ by a factor and an offset in each channel."),
        SAMPLES,
        phrase("Normalise with the reference's mean and standard deviation, after the same scaling to 0..1."),
    ),
    "data.channel_order": CodeGuide(
        phrase("The first and the last channel are exchanged."),
        SAMPLES,
        phrase("Convert BGR to RGB, or leave the conversion out."),
    ),
    "data.resize": CodeGuide(
        phrase("Inputs differ at edges and fine structures."),
        SAMPLES,
        phrase("Resize with the reference's library, interpolation and antialiasing."),
    ),
    "data.colour": CodeGuide(
        phrase("Inputs show the same things in other colours."),
        phrase("Pixels that are alike in the reference are alike in the port, and their colour differs."),
        phrase("Adjust colours with the reference's library, factors and rounding."),
    ),
    "data.crop": CodeGuide(
        phrase("Inputs are shifted or mirrored."),
        SAMPLES,
        phrase("Cut at the reference's place, without random crops and flips."),
    ),
    "data.random": CodeGuide(
        phrase("Samples change when they are read again, on both sides, and not alike; or on one side only."),
        SAMPLES,
        phrase("Give the port the reference's random steps, with their ranges and probabilities."),
    ),
    "data.setting": CodeGuide(
        phrase("Samples differ, and a step that both sides have says that it is set otherwise."),
        SAID,
        phrase("Give the port's step the reference's setting."),
    ),
    "data.label": CodeGuide(
        phrase("Inputs agree, labels do not."), SAMPLES, phrase("Number the classes as the reference does.")
    ),
    "metric.unit": CodeGuide(
        phrase("The metric is 100 times as large, or another multiple."),
        FORMULA,
        phrase("Divide or multiply by the factor that is named."),
    ),
    "metric.topk": CodeGuide(
        phrase("The metric is higher or lower on the same predictions."),
        FORMULA,
        phrase("Pass the reference's k."),
    ),
    "metric.tie": CodeGuide(
        phrase("The metric differs where scores are equal, as those of low precision often are."),
        phrase("With equal scores told apart, whichever is higher, both metrics give one value."),
        phrase("Order equal scores as the reference does: by a stable sort, or by the same function."),
    ),
    "metric.value": CodeGuide(
        phrase("The metric differs on the same predictions."),
        FORMULA,
        phrase("Compute it by the formula that the message names."),
    ),
    "init.distribution": CodeGuide(
        phrase("Initial values have another form: other tails, other bounds."),
        SEEDS,
        phrase("Pass the reference's initialiser."),
    ),
    "init.scale": CodeGuide(
        phrase("Initial values are larger or smaller throughout."),
        SEEDS,
        phrase("Pass the reference's gain, fan or bounds."),
    ),
    "init.bias": CodeGuide(
        phrase("Biases begin at other values."),
        SEEDS,
        phrase("Pass the reference's initialiser of the bias."),
    ),
    "dist.reduction": CodeGuide(
        phrase("Gradients are a multiple: the number of ranks."),
        RANKS,
        phrase("Average where the reference averages."),
    ),
    "dist.batch_scale": CodeGuide(
        phrase("Rate or loss is a multiple: the number of ranks."),
        RANKS,
        phrase("Scale by the number of ranks on both sides, or on neither."),
    ),
    "dist.batch_norm": CodeGuide(
        phrase("One rank agrees with one process, several ranks do not."),
        RANKS,
        phrase("Convert the layers with SyncBatchNorm, or do not, as the reference does."),
    ),
    "dist.sampler": CodeGuide(
        phrase("Ranks see the same samples twice, or miss some."),
        RANKS,
        phrase("Give each rank its share with the distributed sampler, and set its epoch."),
    ),
    "dist.rank": CodeGuide(
        phrase("Ranks agree at the start and differ later."),
        RANKS,
        phrase("Broadcast parameters and buffers as the reference does."),
    ),
}
