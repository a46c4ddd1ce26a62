"""What decides about two recorded runs, of which no call can be repeated, and about accepted folders."""

from __future__ import annotations

from parfocal.judge.limits.entry import Limit

JUMP = Limit(
    32.0,
    "Times the relative error a call was given that a correct call may add to it.",
    "docs/recorded-runs.md: 0 of 120 correct pairs are called different; not swept over other values.",
)
GIVEN = Limit(
    8.0,
    "Units in the last place that count as given to a call whose inputs agree exactly.",
    "docs/recorded-runs.md: 0 of 120 correct pairs are called different; not swept over other values.",
)
WEIGHTS_BETWEEN = Limit(
    2.0,
    "Times farther apart that weights may be as a step begins than they were as the last one ended: they are "
    "the same, measured again.",
)
CLEARLY_WORSE = Limit(
    10.0,
    "Times worse another computation of batch statistics must fit.",
)
BATCHES_SEARCHED = Limit(
    256,
    "Batches of the reference that are looked through for the port's.",
)
SEVERAL = Limit(
    2,
    "Parameters from which on one factor is no chance.",
)
WHOLE_RATIO = Limit(
    1e-3,
    "Relative distance of a ratio from a whole number of samples, elements or ranks.",
)
OUTPUTS_EXPLAIN = Limit(
    0.1,
    "Relative error of outputs from which on they may give any loss.",
)
SMALLEST_UNIT = Limit(
    2.0**-52,
    "Unit in the last place of values whose dtype has no rounding: that of float64.",
    "follows from the format of float64.",
)
AGREEING = Limit(
    1e-2,
    "Relative error of outputs above which they are not the same values in the same order.",
)
RANK_LOSS = Limit(
    1e-5,
    "Relative error that may be left of a loss that is computed again from ranks.",
)
RANKS_SHARE = Limit(
    1e-5,
    "Relative difference from which on ranks do not share a weight or a gradient.",
)
GRADIENT_NORM = Limit(
    1e-2,
    "Relative difference of norms that counts: gradients of deep models differ by less.",
)
SHARED_SAMPLES = Limit(
    0.5,
    "Share of a rank's samples that are on all ranks by mistake, not to fill up.",
)
UPDATE = Limit(
    8.0,
    "Times what rounding and the gradient's error explain of an update.",
    "docs/recorded-runs.md: 0 of 120 correct pairs are called different; not swept over other values.",
)
UPDATE_SIZES = Limit(
    0.02,
    "Relative difference of the sizes of two updates that a projection may show of the same.",
)
UPDATES_TOGETHER = Limit(
    16.0,
    "Times what is explained, for the updates of all parameters as one.",
    "docs/recorded-runs.md: 0 of 120 correct pairs are called different; not swept over other values.",
)
UPDATE_SEEN = Limit(
    16.0,
    "Units in the last place of a weight from which on two updates are not the same.",
)
SAME_ORDER = Limit(
    1e-3,
    "Relative difference of weights that lie in the same order.",
)
UPDATE_FITTED = Limit(
    1e-2,
    "Share of an update that a fit may leave over.",
)
FACTOR_CLEAR = Limit(
    1e-2,
    "Relative difference of fitted factors that is one.",
)
FACTOR_THROUGHOUT = Limit(
    5.0,
    "How far, of 1, the parts may be from one factor throughout.",
)
FACTOR_NONE = Limit(
    1e-5,
    "A fitted factor below this is none.",
)
PROPORTIONAL = Limit(
    1e-3,
    "Relative error that may be left when one tensor is a multiple of another.",
)
WEIGHTS_DIFFER = Limit(
    1e-4,
    "Relative difference from which on two parameters do not hold the same values.",
    "docs/recorded-runs.md: 0 of 120 correct pairs are called different; not swept over other values.",
)
WEIGHTS_EQUAL = Limit(
    1e-5,
    "Up to which fingerprints are those of the same values: nothing was computed with them.",
)
FEWEST_LOSSES = Limit(
    2,
    "Losses of a training in an accepted folder. The guide's own: the first shows the forward pass, "
    "the second the update.",
    "the guide to reproducing papers.",
)
EQUAL_FLOATS = Limit(
    32,
    "Computed apart, so many floats are not equal to the last bit: one file is a copy.",
    "with both frameworks: of a linear layer's outputs 66 % are equal where 4 numbers are summed up, at most "
    "44 % from 8 on",
)
PERCENT_OF_FRACTION = Limit(
    (90.0, 110.0),
    "A percentage is 100 times its fraction; after other roundings or a slightly different model, nearly so.",
)
OTHER_BEGINNING = Limit(
    (2, 0.5),
    "Fewest parameters with other values, and their share of those that are not all equal numbers, from "
    "which on two runs are said to begin with other weights.",
)
