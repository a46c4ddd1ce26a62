"""Optimizers, schedules, initialisers and tools of training that correspond."""

from __future__ import annotations

from parfocal.backends.counterparts.entry import ArgumentPair, Category, Counterpart, Relation, pairs
from parfocal.backends.counterparts.tools import lone
from parfocal.backends.vocabulary.meanings import optimizers

_BETAS = ArgumentPair("betas", "beta1, beta2", Relation.PARTS)
_COMMON = pairs(params="parameters", lr="learning_rate", weight_decay="weight_decay")
_ADAM = (*_COMMON, _BETAS, *pairs(eps="epsilon"))

# torch's class, paddle's class, and how the arguments correspond.
OPTIMIZER_PAIRS: tuple[tuple[str, str, tuple[ArgumentPair, ...]], ...] = (
    ("SGD", "SGD", _COMMON),
    ("SGD", "Momentum", (*_COMMON, *pairs(momentum="momentum", nesterov="use_nesterov"))),
    ("Adam", "Adam", (*_ADAM, *pairs(amsgrad="amsgrad"))),
    ("AdamW", "AdamW", (*_ADAM, *pairs(amsgrad="amsgrad"))),
    ("Adamax", "Adamax", _ADAM),
    ("NAdam", "NAdam", (*_ADAM, *pairs(momentum_decay="momentum_decay"))),
    ("RAdam", "RAdam", _ADAM),
    (
        *("Adagrad", "Adagrad"),
        (*_COMMON, *pairs(eps="epsilon", initial_accumulator_value="initial_accumulator_value")),
    ),
    ("Adadelta", "Adadelta", (*_COMMON, *pairs(rho="rho", eps="epsilon"))),
    (
        *("RMSprop", "RMSProp"),
        (*_COMMON, *pairs(alpha="rho", eps="epsilon", momentum="momentum", centered="centered")),
    ),
    (
        *("Rprop", "Rprop"),
        pairs(params="parameters", lr="learning_rate", etas="etas", step_sizes="learning_rate_range"),
    ),
    ("ASGD", "ASGD", _COMMON),
    ("LBFGS", "LBFGS", pairs(params="parameters", lr="learning_rate")),
)

SCHEDULER_PAIRS: tuple[tuple[str, str, tuple[ArgumentPair, ...]], ...] = (
    ("StepLR", "StepDecay", ()),
    ("MultiStepLR", "MultiStepDecay", ()),
    ("ExponentialLR", "ExponentialDecay", ()),
    ("CosineAnnealingLR", "CosineAnnealingDecay", ()),
    ("CosineAnnealingWarmRestarts", "CosineAnnealingWarmRestarts", ()),
    ("LambdaLR", "LambdaDecay", ()),
    ("MultiplicativeLR", "MultiplicativeDecay", ()),
    ("LinearLR", "LinearLR", pairs(total_iters="total_steps", end_factor="end_factor")),
    ("PolynomialLR", "PolynomialDecay", pairs(total_iters="decay_steps", power="power")),
    (
        *("OneCycleLR", "OneCycleLR"),
        pairs(max_lr="max_learning_rate", pct_start="phase_pct", div_factor="divide_factor"),
    ),
    (
        *("CyclicLR", "CyclicLR"),
        pairs(base_lr="base_learning_rate", max_lr="max_learning_rate", gamma="exp_gamma"),
    ),
    ("ReduceLROnPlateau", "ReduceOnPlateau", ()),
)
_SCHEDULES = "torch.optim.lr_scheduler", "paddle.optimizer.lr"
# What only one side has, and what to write on the other.
LONE_SCHEDULERS = {
    f"{_SCHEDULES[0]}.ConstantLR": "Write paddle.optimizer.lr.LambdaDecay with a factor for the first steps.",
    f"{_SCHEDULES[0]}.SequentialLR": "Write paddle.optimizer.lr.LambdaDecay with the curve as a factor.",
    f"{_SCHEDULES[0]}.ChainedScheduler": "Write paddle.optimizer.lr.LambdaDecay with the product of factors.",
    f"{_SCHEDULES[1]}.NoamDecay": "",
    f"{_SCHEDULES[1]}.NaturalExpDecay": "",
    f"{_SCHEDULES[1]}.InverseTimeDecay": "Write LambdaLR with lambda step: 1 / (1 + gamma * step).",
    f"{_SCHEDULES[1]}.PiecewiseDecay": "Write LambdaLR with the value of each piece as a factor.",
    f"{_SCHEDULES[1]}.LinearWarmup": "Write LambdaLR with the warm-up and what follows as one factor.",
}

INITIALISER_PAIRS: tuple[tuple[str, str, tuple[ArgumentPair, ...]], ...] = (
    ("uniform_", "Uniform", pairs(a="low", b="high")),
    ("normal_", "Normal", pairs(mean="mean", std="std")),
    ("trunc_normal_", "TruncatedNormal", pairs(mean="mean", std="std", a="a", b="b")),
    ("constant_", "Constant", pairs(val="value")),
    ("zeros_", "Constant", ()),
    ("ones_", "Constant", ()),
    ("xavier_uniform_", "XavierUniform", pairs(gain="gain")),
    ("xavier_normal_", "XavierNormal", pairs(gain="gain")),
    ("kaiming_uniform_", "KaimingUniform", pairs(a="negative_slope", nonlinearity="nonlinearity")),
    ("kaiming_normal_", "KaimingNormal", pairs(a="negative_slope", nonlinearity="nonlinearity")),
    ("orthogonal_", "Orthogonal", pairs(gain="gain")),
    ("dirac_", "Dirac", pairs(groups="groups")),
    ("calculate_gain", "calculate_gain", pairs(nonlinearity="nonlinearity", param="param")),
)

TOOL_PAIRS: tuple[tuple[str, str], ...] = (
    ("torch.nn.utils.clip_grad_norm_", "paddle.nn.ClipGradByGlobalNorm"),
    ("torch.nn.utils.clip_grad_value_", "paddle.nn.ClipGradByValue"),
    ("torch.nn.utils.weight_norm", "paddle.nn.utils.weight_norm"),
    ("torch.nn.utils.spectral_norm", "paddle.nn.utils.spectral_norm"),
    ("torch.nn.utils.parameters_to_vector", "paddle.nn.utils.parameters_to_vector"),
    ("torch.nn.Module", "paddle.nn.Layer"),
    ("torch.nn.Module.load_state_dict", "paddle.nn.Layer.set_state_dict"),
    ("torch.optim.Optimizer.zero_grad", "paddle.optimizer.Optimizer.clear_grad"),
    ("torch.utils.data.DataLoader", "paddle.io.DataLoader"),
    ("torch.utils.data.Dataset", "paddle.io.Dataset"),
    ("torch.utils.data.distributed.DistributedSampler", "paddle.io.DistributedBatchSampler"),
    ("torch.autocast", "paddle.amp.auto_cast"),
)
TOOL_ARGUMENTS = {
    "torch.nn.utils.clip_grad_norm_": pairs(max_norm="clip_norm"),
    "torch.nn.utils.clip_grad_value_": pairs(clip_value="max"),
    "torch.nn.utils.weight_norm": pairs(module="layer"),
    "torch.nn.utils.spectral_norm": pairs(module="layer"),
}
LONE_TOOLS = ("torch.nn.utils.rnn.pack_padded_sequence", "paddle.metric.Accuracy", "paddle.metric.accuracy")


def training() -> list[Counterpart]:
    """Every entry of the tables above."""
    homes = (
        (Category.OPTIMIZER, "torch.optim", "paddle.optimizer", OPTIMIZER_PAIRS),
        (Category.SCHEDULER, *_SCHEDULES, SCHEDULER_PAIRS),
        (Category.INITIALISER, "torch.nn.init", "paddle.nn.initializer", INITIALISER_PAIRS),
    )
    found = [
        Counterpart(
            category,
            f"{torch}.{ours}",
            f"{paddle}.{theirs}",
            optimizers().get(theirs) if category is Category.OPTIMIZER else None,
            arguments=arguments,
        )
        for category, torch, paddle, table in homes
        for ours, theirs, arguments in table
    ]
    found += [
        Counterpart(Category.TOOL, ours, theirs, arguments=TOOL_ARGUMENTS.get(ours, ()))
        for ours, theirs in TOOL_PAIRS
    ]
    found += [lone(Category.SCHEDULER, name, instead) for name, instead in LONE_SCHEDULERS.items()]
    found += [lone(Category.TOOL, name, "") for name in LONE_TOOLS]
    found.append(lone(Category.OPTIMIZER, "paddle.optimizer.Lamb", "Write the optimizer yourself."))
    return found
