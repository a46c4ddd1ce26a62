"""What proves a cause: how near values must be, how much a fit may leave over."""

from __future__ import annotations

from parfocal.judge.limits.entry import Limit

FITTED = Limit(
    1e-4,
    "Relative error that float32 may leave where a value is computed again another way, or by a "
    "fitted scale and offset: far below the effect of any mistake.",
)
SAME_LAYOUT = Limit(
    1e-2,
    "Relative distance below which two arrays show the same values in another order.",
)
CHANCE = Limit(
    1e-6,
    "Probability below which the shape of an error is no chance.",
)
SHAPE_NOISE = Limit(
    8,
    "Units of rounding that are noise where the shape of an error is looked at.",
)
SHAPE_SLACK = Limit(
    0.02,
    "Of a fitted change that may be left over at each element.",
)
SHAPE_SHARE = Limit(
    0.99,
    "Of the elements that must fit a change.",
)
ORDER_LEFT = Limit(
    1e-3,
    "Share of the moved elements that may still differ when they are put in order.",
)
NEARER_TO_RIGHT = Limit(
    8.0,
    "A value counts as the right one only if it is that much nearer to it than the wrong one.",
)
OP_ROUNDING = Limit(
    32.0,
    "Units in the last place, relative to the size of all values, that are no difference between two ops.",
)
GUARDING = Limit(
    1e-2,
    "A number that small, added, keeps something from being zero.",
)
MENDED_NEAR = Limit(
    1e-4,
    "Relative distance of values that are the same once an op is mended.",
)
NUMBER_FINEST = Limit(
    1e-6,
    "Single precision knows a number up to that share of it.",
    "follows from the 24 bits of float32, and a few operations.",
)
NUMBER_SPREAD = Limit(
    1e-3,
    "A number that is not the same everywhere, up to that share of it, is none.",
)
NUMBER_DIGITS = Limit(
    3,
    "Digits of a number that somebody wrote.",
)
FIT_FIRST_STEP = Limit(
    1e-2,
    "Relative change of a number by which its influence is measured.",
)
FIT_LONGEST_STEP = Limit(
    3.0,
    "Of a number's logarithm at once.",
)
FIT_DONE = Limit(
    1e-6,
    "Relative change of a number below which the search for it ends.",
)
FIT_LEAP = Limit(
    1e3,
    "Times a number: the largest leap of the search for it.",
)
SAME_LITERAL = Limit(
    1e-9,
    "Relative: numbers that near are written alike.",
)
RATE_ROUNDED = Limit(
    1e-3,
    "Of what is added at a rate: it is small beside what was there before.",
)
UNSEEN_APART = Limit(
    1e-3,
    "Relative: more than rounding makes of inputs of any size.",
)
WEIGHT_SIZES = Limit(
    1e-5,
    "Relative difference of sizes of weights that are the same, but for their layout.",
)
INITIAL_ENOUGH = Limit(
    64,
    "Numbers below which no shape of a distribution is told.",
)
INITIAL_FEW = Limit(
    2048,
    "Numbers below which the shape of a distribution may be another than it looks: likelihoods decide.",
    "of 200 draws of 128 uniform numbers, 75 had the kurtosis of normal ones; of 1,600 numbers 3",
)
INITIAL_UNLIKELY = Limit(
    1e-3,
    "Below this p-value of a Kolmogorov-Smirnov test numbers are not from a distribution.",
)
INITIAL_CLOSE = Limit(
    4.0,
    "Standard errors that a fitted scale may be off.",
)
INITIAL_COARSEST = Limit(
    0.1,
    "Share of itself that a fitted scale may be off at most.",
)
FEW_ROUNDINGS = Limit(
    8,
    "Units in the last place of float32 that a few operations, or a sum of a few terms, may be off.",
)
CANCELLED = Limit(
    64,
    "Units in the last place of float64, of the largest rate: what is left of a cosine near its end.",
)
RATE_POINTS = Limit(
    3,
    "Points that a hypothesis about a schedule must be seen at, besides those it is fitted to.",
)
ALIKE_PICTURES = Limit(
    0.9,
    "Correlation of two pictures of one thing.",
)
FURTHER_STEP = Limit(
    1 / 3,
    "Share of the difference of two pictures that a further change must leave at most, where no change "
    "makes them equal: a wrong order of channels leaves a hundredth, a chance improvement most of it.",
)
KNOWN_CONSTANT = Limit(
    1e-3,
    "Relative difference of a fitted scale or offset from the one that known constants make.",
)
SUBSET_FEWEST = Limit(
    3,
    "Samples of the port that must be found among the reference's, elsewhere, before the sides are said to "
    "have other subsets of the same data.",
)
SORTED_FEWEST = Limit(
    8,
    "Samples of each class, in one piece, before samples are said to come sorted by class.",
    "follows from chance: two classes of eight samples come so once in 6,000 times.",
)
RESAMPLED_CONSTANT = Limit(
    5e-2,
    "The same where pictures are resampled as well, which changes their contrast by a few percent.",
)
NEAR_PIXELS = Limit(
    64,
    "Pairs of changed pixels of one colour that must be seen before a change of colours is told.",
)
ONE_COLOUR = Limit(
    0.98,
    "Share of pairs of pixels of one colour that must have one colour in the port, too.",
    "1.000 in 20 sets of pictures with adjusted colours, at most 0.948 in 35 that were resampled.",
)
ALIKE_PIXELS = Limit(
    (0.125, 0.5),
    "Shares of the typical change of a pixel: two pixels are alike within the first in the reference, within "
    "the second in the port.",
)
COLOUR_CHANNELS = Limit(
    4,
    "Most channels that can be colours.",
)
CROP_PATCH = Limit(
    6,
    "Pixels of the part by which a crop is looked for elsewhere.",
)
UPDATE_EFFECT = Limit(
    1e-6,
    "Share of an update that a setting has to change to count.",
)
TINY_EPSILON = Limit(
    1e-7,
    "An epsilon up to this is there only so that nothing is divided by zero.",
)
SAME_SETTING = Limit(
    1e-6,
    "Relative difference of two settings or rates that are the same: some frameworks keep them in "
    "float32, and a formula may give them.",
)
NO_NUMBER = Limit(
    1e-30,
    "A number solved for below this is zero.",
)
COMPUTED_TABLE = Limit(
    1e-3,
    "Of their size that computed tables may differ: a sine of a large number is no more exact than that.",
)
ORDER_QUANTILES = Limit(
    15,
    "Quantiles in the signature of a sample.",
)
ORDER_CLOSE = Limit(
    2e-3,
    "Distance of two signatures of one sample: rounding, and quantiles between two values.",
)
ORDER_SHARE = Limit(
    0.9,
    "Of the samples that must be found again for an order to be told.",
)
DATA_CLASSES = Limit(
    10_000,
    "Distinct whole numbers that can be classes.",
)
EQUAL_RATIO = Limit(
    1e-3,
    "Relative spread of a ratio that is one number for all channels.",
)
DROPOUT_DIGITS = Limit(
    6,
    "Digits of a rate: rates are computed, by a formula or another.",
)
ACCUMULATED = Limit(
    1e-3,
    "Relative error of gradients that are a sum of others.",
)
LOSSES_PARTED = Limit(
    1e-3,
    "Relative difference of two losses that are no longer the same.",
)
LOSSES_GROWN = Limit(
    8.0,
    "Times a difference must have grown to be said to grow.",
)
LOSS_SOLVED_FROM = Limit(
    2,
    "Values of a loss that a number of its formula is told from: it is solved from one, which any loss "
    "fits, and must hold of another.",
)
LABELS_FEWEST = Limit(
    4,
    "Labels, or places of one id, from which on a rule about all of them is told: fewer agree by chance.",
)
STRETCH_ROUNDING = Limit(
    4.0,
    "Units in the last place that one gradient may be off in a stretch of free steps.",
)
STRETCH_NOISY = Limit(
    1e-3,
    "Relative floor of a gradient that is little but rounding: its updates go anywhere.",
)
STRETCH_LOSS = Limit(
    1e-4,
    "Relative difference of losses at which a stretch is broken off.",
)
SHAPE_SHORTEST = Limit(
    6,
    "Updates of a falling rate that a formula is told from: more than any formula has numbers.",
)
SHAPE_POWERS = Limit(
    (0.5, 0.9, 1.5, 2.0, 3.0, 4.0),
    "Powers of polynomial schedules that people write.",
)
SHAPE_NOTHING_LEFT = Limit(
    1e-6,
    "Share of the highest rate below which the end of a fall is 0.",
)
SHAPE_STILL = Limit(
    16 * 2.0**-52,
    "Share of the highest rate by which a rate that stays may move: rounding of float64.",
)
LOSS_FITTED = Limit(
    1e-3,
    "Relative difference of a loss from one with numbers that were solved from several losses.",
)
LOSS_ROWS = Limit(
    4,
    "Samples that the weights of a loss are read from.",
)
