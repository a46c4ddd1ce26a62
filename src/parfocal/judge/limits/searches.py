"""How much is tried before a search ends: counts that decide whether a cause is found."""

from __future__ import annotations

from parfocal.judge.limits.entry import Limit

ALL_ORDERS = Limit(
    5,
    "Axes of which all 120 orders are tried.",
    "follows from 5! = 120.",
)
ALL_ORDERS_WRITTEN = Limit(
    6,
    "Axes of which every order is tried for a line of code: nothing is computed for one.",
)
AXES_WITH_ROLES = Limit(
    (3, 5),
    "Fewest and most axes of a tensor whose axes can have exchanged their roles.",
)
LAYOUT_SAMPLE = Limit(
    1024,
    "Elements by which orders of axes are told apart, before all are compared.",
)
SHAPE_SAMPLE = Limit(
    1 << 20,
    "Elements of an error of which the shape is looked at.",
)
ORDER_INDICES = Limit(
    1 << 16,
    "Indices along one axis whose order is solved for.",
)
ORDER_PROBE = Limit(
    256,
    "Elements by which a wrong order is ruled out, before all are compared.",
)
VALUE_SAMPLE = Limit(
    512,
    "Elements by which values of ops are told apart, before all are compared.",
)
WORK_SHARES = Limit(
    (1.0, 2.0),
    "Of the alignment's own work: once a cause is known no further search begins beyond the first; "
    "without one the search ends at the second.",
    "over 21 planted faults the share of work and the share of time agree within a factor of two.",
)
READING_WORK = Limit(
    4.0,
    "What reading the source for one divergence is worth, in calls.",
)
WRITING_WORK = Limit(
    3.0,
    "What reading the source around a place is worth, in calls.",
)
ELEMENTS_OF_A_CALL = Limit(
    2.0**16,
    "So many numbers that a call gives are as much work as one more call.",
)
BACKWARD_WORK = Limit(
    2.0,
    "Times the work of going forward.",
)
WIDE_WORK = Limit(
    2.0,
    "Times the work in float32 of a call in float64.",
)
ALIGNING_WORK = Limit(
    60.0,
    "In calls: what an alignment is besides running models (weights, pairs, a report).",
)
WATCHED_WORK = Limit(
    3.0,
    "Times the work of running an op, to look at each.",
)
GRADIENT_LINES = Limit(
    12,
    "Lines that are tried for a wrong gradient, each by running the call once.",
)
KINK_STEPS = Limit(
    4,
    "Steps behind an op that only move what it gives.",
)
NAMED_VALUES = Limit(
    6,
    "Expressions in the user's code for one value.",
)
NAMED_LINES = Limit(
    2,
    "Lines with such expressions that are tried.",
)
MASKS = Limit(
    2,
    "Masks of one layer that are tried.",
)
SETTING_STEPS = Limit(
    40,
    "Steps of the search for a number that a layer was built with.",
)
RATES_OF_A_MODULE = Limit(
    8,
    "Numbers of a module that are tried as a rate.",
)
WEIGHT_OF_A_LINE = Limit(
    64,
    "Numbers that a line of code still may list.",
)
IGNORED_LABELS = Limit(
    8,
    "Labels that are tried as ignored by a metric.",
)
BATCH_SIZES = Limit(
    (2, 4, 8, 10, 16, 20, 25, 32, 50, 64, 100, 128, 256, 512, 1000, 1024),
    "Batch sizes by which a metric may have been averaged.",
)
LARGEST_K = Limit(
    10,
    "Largest k of a top-k accuracy that is tried.",
)
METRIC_CLASSES = Limit(
    1000,
    "Classes up to which a metric over classes is computed again.",
)
OPS_IN_A_ROW = Limit(
    4,
    "Ops in a row that may differ: more of them say nothing.",
)
FITTED_OPS = Limit(
    12,
    "Ops that are computed anew for every trial of a number.",
)
FITTED_VALUES = Limit(
    1 << 18,
    "Values of all of these ops together.",
)
FIT_ROUNDS = Limit(
    24,
    "Rounds of the search for a number.",
)
JOINT_PLACES = Limit(
    12,
    "Places at which mistakes are tried together.",
)
JOINT_MISTAKES = Limit(
    4,
    "Mistakes that are tried together: more at once say nothing.",
)
JOINT_BEHIND = Limit(
    2,
    "Of these, mistakes one behind the other.",
)
MISMATCH_STEPS = Limit(
    64,
    "Ops back from a mismatch: further back than that is another call.",
)
OP_TRIALS = Limit(
    (8, 24),
    "Runs of the port's call that one divergence is worth: of the whole model, of a small part.",
)
ORDERED_TENSORS = Limit(
    4,
    "Tensors that are tried in every order.",
)
REWRITTEN_LINES = Limit(
    12,
    "Lines that are tried for one place.",
)
REMOVED_STATEMENTS = Limit(
    2,
    "Statements that may go for a line to be right.",
)
REWRITTEN_PLACES = Limit(
    60,
    "Places that a line is looked for at.",
)
SHARING_MODULES = Limit(
    6,
    "Other modules that are asked whether they share a weight.",
)
WATCHED_BYTES = Limit(
    1 << 29,
    "Bytes of values that are kept of the ops of one call.",
)
WATCHED_FRAMES = Limit(
    4,
    "Frames of the user's code around an op.",
)
EXPRESSION_DEPTH = Limit(
    8,
    "Ops in one expression, one inside the other.",
)
EXPRESSION_LENGTH = Limit(
    600,
    "Characters of an expression.",
)
FRAME_ITEMS = Limit(
    64,
    "Items of a list in the user's code that are kept.",
)
RATE_SHIFTS = Limit(
    64,
    "Steps that a learning rate's curve is looked for earlier or later.",
)
RATE_EPOCHS = Limit(
    1024,
    "Steps between two of a schedule that goes by epochs.",
)
SAMPLE_MOVES = Limit(
    2,
    "Changes that move the values of a sample, tried together: more than two mistakes of this kind in one "
    "data set are rare, and every further one multiplies the time.",
)
COLOUR_NEIGHBOURS = Limit(
    32,
    "Pixels of the nearest brightness among which those of the same colour are looked for.",
)
CROP_SHIFTS = Limit(
    48,
    "Pixels that a crop is looked for elsewhere.",
)
SOLVED_ELEMENTS = Limit(
    4096,
    "Elements of a parameter that numbers of an update are solved from.",
)
SOLVED_ROUNDS = Limit(
    40,
    "Rounds of a solution by secants.",
)
DATA_KEPT = Limit(
    48,
    "Samples that are kept whole to explain a difference.",
)
DATA_SIGNED = Limit(
    200_000,
    "Samples whose order is looked at.",
)
DATA_READ_AGAIN = Limit(
    (32, 4),
    "Samples that are read again, and how often, to see whether they change.",
    "follows from the share of samples that a step must change to be missed once in a thousand times: 2.6 %.",
)
RANDOM_SOURCES = Limit(
    (32, 12),
    "Samples whose random changes are measured, and how often each is drawn.",
    "tests/pairs/training/test_random_data.py: a crop from half the range of sizes, flips of one side and "
    "another range of brightness are seen by it.",
)
DRAW_PERMUTATIONS = Limit(
    (999, 19_999),
    "Permutations of draws between the sides: a first look, and what a verdict takes.",
)
DRAWS_REPEATED = Limit(
    16,
    "Draws from one range that get one number where sides draw alike in another order; then comes another.",
    "more than the ten attempts of a crop of random size, so that both sides fall back together.",
)
RANDOM_PARTS = Limit(
    3,
    "Rows and columns of parts of a picture whose weight is looked at, to see where crops lie.",
)
RANDOM_LEVELS = Limit(
    (0.0, 0.1, 0.5, 0.9, 1.0),
    "Quantiles of a random sample's values that are compared.",
)
COINS = Limit(
    8,
    "Draws of a sample that are turned to see whether they decide a step.",
)
COIN_STEPS = Limit(
    10,
    "Halvings by which the share of a step is found that is taken at random: to a thousandth.",
)
BATCH_SAMPLES = Limit(
    16,
    "Samples of a batch that a cause is sought in.",
)
VARIANCE_VALUES = Limit(
    10_000_000,
    "Values that a variance is taken over again.",
)
HORIZON_STEPS = Limit(
    (3, 32, 8),
    "Steps that are run freely to see when two correct trainings part: at least, at most, and one "
    "step in so many.",
)
HORIZON_UNKNOWN = Limit(
    8,
    "The same, of a training whose length is not known.",
)
STEPS_LOOKED_INTO = Limit(
    4,
    "Steps whose calls are aligned to explain a difference.",
)
KINK_TRIALS = Limit(
    6,
    "Times that a step of the reference is made again, moved, to find the jump of a gradient. Each flips the "
    "same value about every second time and costs a step of the reference; the calls of a step cost more.",
)
LOCKSTEP_FIRST = Limit(
    4,
    "Steps in lockstep at the start of a training.",
)
STRETCH_STEPS = Limit(
    (4, 32),
    "Steps of the first stretch without lockstep and of the longest: rounding grows with the length.",
)
STRETCHES_IN_A_ROW = Limit(
    4,
    "Longest stretches between two steps in lockstep.",
)
STRETCH_LARGE = Limit(
    1 << 20,
    "Numbers in the parameters of a model whose steps cost more than to judge them.",
)
STRETCH_TRIES = Limit(
    2,
    "Stretches that may fail before none is tried again.",
)
FLOORS_KEPT = Limit(
    8,
    "Updates in lockstep for which a floor is used again: settings and sizes change slowly.",
)
FACTS_READ = Limit(
    20_000,
    "Samples of a data set, evenly spread, that are read for what a plan states of it. Classes that are not "
    "seen among them are no mistake, as the rest is not read.",
)
UPDATES_MOVED = Limit(
    3,
    "Times that the reference's updates are repeated from weights a rounding error away, to see how far that "
    "takes their losses.",
)
RUNS_TRIED = Limit(
    100,
    "Trainings of each side up to which it is computed how many would decide a difference.",
)
METRIC_PARTS = Limit(
    2_000,
    "Parts of the evaluation data on which a metric is computed, one sample each where there are no more, to "
    "see whether it is a mean over samples, and which of them answer otherwise after another training.",
)
STEP_OBJECTS = Limit(
    400,
    "Objects of a data set that are looked at for steps that say how they are set.",
)
STEP_ITEMS = Limit(
    32,
    "Items of a list in a data set that may be its steps or one setting: longer lists hold samples.",
)
