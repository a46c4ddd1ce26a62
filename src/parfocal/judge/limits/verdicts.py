"""What makes a difference a divergence: limits in units of noise, and what the noise is made of."""

from __future__ import annotations

from parfocal.judge.limits.entry import Limit

CALL = Limit(
    4.0,
    "Units of noise that a call may be off. The error of a correct call is at most the sum of both "
    "sides' distances from float64 and its noise at least the larger of the two: it scores at most 2, "
    "and this is twice that.",
    "docs/noise.md: correct calls score 1.76 at most, the smallest of 86 planted mistakes 14.6. "
    "Recorded runs: correct calls of a residual network, an encoder, an LSTM and a Llama stay below "
    "1.3, an epsilon of 2e-5 for 1e-5 scores 16.",
)
WHOLE_MODEL = Limit(
    12.0,
    "Units of noise that the end of a computation may be off (outputs, losses, gradients of whole "
    "models and of blocks in which nothing is led): its floor is one random trial of an amplified "
    "quantity, not a bound.",
    "docs/noise.md: correct whole models score 11.58 at most (densenet121), the next 10.46.",
)
COMPUTED_ONCE = Limit(
    4.0,
    "Units of rounding that a number may be off that each side computes in a few operations (a "
    "sample, a learning rate, a metric): as for every call.",
)
LOSS_OF_A_STEP = Limit(
    32.0,
    "Units of noise that the loss of a training step may be off. Of one number nothing averages out: "
    "exp, log and tanh may all be off the same way.",
    "one correct training was seen at 13; no sweep.",
)
UPDATE = Limit(
    8.0,
    "Units of rounding that a parameter, a slot or a buffer may be off after one update.",
    "docs/training-faults.md: no false alarm in 280 correct trainings; not swept over other values.",
)
CLIPPED_NORM = Limit(
    64.0,
    "Units of rounding that a norm of gradients may be off: it is a sum over all parameters, in any order.",
)
RATE_UNITS = Limit(
    4.0,
    "Units in the last place of float32 that two learning rates may be apart and make the same update.",
)
PEAK_SLACK = Limit(
    3.0,
    "How much more than its typical size the largest rounding error may vary from one run to the next.",
)
LARGE = Limit(
    2.0**13,
    "Units in the last place: no rounding of one call is so large, only what flips or is no rounding at all.",
)
BEYOND_ANY_SUM = Limit(
    2.0**17,
    "Of a sum of n products, times what one unit in the last place of its terms makes of it. Rounding "
    "is at most about n times as large. Not so of what is no sum: 1 - cos(x) loses every digit and "
    "may be right.",
    "what it saves: Inception with every padding wrong 1.36x of the correct pair's time before, 1.21x after.",
)
SHAKE = Limit(
    8.0,
    "How much harder than measured the reference is shaken to find a whole model's floor. Where a "
    "ReLU or a maximum flips the result jumps, and whether one flips is chance: several must have "
    "flipped before their size is known.",
)
SUMMED = Limit(
    0.2,
    "Rounding of a sum of n terms whose signs are as good as random: this times sqrt(n) units of the result.",
)
UNUSUAL = Limit(
    32.0,
    "Times the typical relative error: more is not carried on to the whole model as it is.",
)
ROUNDING_LEFT = Limit(
    0.02,
    "Of a rounding error less than this share is left when both sides compute in float64.",
)
MISTAKE_STAYS = Limit(
    0.5,
    "Of a mistake at least this share is left when both sides compute in float64.",
)
FLOOR_TRIALS = Limit(
    4,
    "Random trials of a perturbation floor: a few numbers need several before their spread is known.",
)
FEW_NUMBERS = Limit(
    64,
    "Numbers of a tensor up to which one random trial is not enough for a floor.",
)
CLEARLY_RIGHT = Limit(
    3.0,
    "Times below the limit of a training's results at which no more ways to measure a floor are tried.",
)
KINK_UNITS = Limit(
    4.0,
    "Units in the last place by which the reference is moved to see whether a value lies on a kink. The two "
    "frameworks sum in other orders and are farther apart than one unit; what is smooth moves in proportion "
    "and stays below the limit of a whole model.",
)
KINK_LEFT = Limit(
    0.25,
    "Share of a jump that may be left once the reference jumps the same way: chance alone does not take "
    "away as much of a mistake.",
)
NEAR_ROUNDING = Limit(
    4.0,
    "Units of a tensor's own rounding below which no dearer floor is measured: it is right by the cheapest.",
)
NEAR_WEIGHT = Limit(
    2.0,
    "Units of a weight's own rounding below which the floor of its update is not computed: it is "
    "right without.",
)
MISTAKES = Limit(
    12,
    "Divergences of one run that are explained.",
)
PLACES = Limit(
    200,
    "Divergences of one run that are looked into: the same mistake in many layers.",
)
DEAD = Limit(
    1e-7,
    "Outputs below this say nothing about the weights that made them.",
)
FREE_OF_RUNS = Limit(
    0.9,
    "A plan of weights this sure needs no trial run: the alignment itself is the trial.",
)
EVALUATION_TOLD = Limit(
    1e-3,
    "Share of the outputs from which on another convention of running variances is a difference, and "
    "no mere note.",
)
INITIAL_ALARMS = Limit(
    1e-3,
    "How often all tensors of a correct model together may be called differently initialised.",
    "20 torchvision models against themselves: no alarm.",
)
INITIAL_NUMBERS = Limit(
    20_000,
    "Numbers of one tensor and seed that are looked at: more say no more of a distribution.",
)
INITIAL_SAME = Limit(
    1e-6,
    "Relative: fixed numbers that near are the same.",
)
CONFIDENCE = Limit(
    0.95,
    "Of the interval around the mean of several runs.",
    "the usual one of statistics.",
)
TRAINED_ALARMS = Limit(
    0.01,
    "How often all metrics of a correct port together may be called different after training, where they "
    "are farther off than the plan's ``within``: the bound that both sides' own runs and the number of "
    "samples set is held at this rate. Rarer alarms would take more trainings than people make.",
    "tests/unit/judge/test_chance.py: 2,000 pairs of simulated correct trainings for each number of runs.",
)
SAME_MEAN = Limit(
    1e-5,
    "Relative: a metric is the mean of what it is on single samples if it is that near to it. Both are sums "
    "in float32, in other orders.",
)
TELLING_RUNS = Limit(
    5,
    "Trainings of each side that are recommended, and made where the plan says nothing: the fewest that show "
    "a difference of three standard deviations three times in four, and whose deal to two sides can be as "
    "rare as an alarm.",
    "follows from Student's distribution; tests/unit/judge/test_chance.py.",
)
FEW_SHADOWS = Limit(
    2.0,
    "Times that the farther of two nudged trainings may be nearer than what rounding can do.",
)
SHADOWS = Limit(
    2,
    "Nudged trainings beside the reference's, where an update follows no rule: the farther one counts.",
)
RANDOM_DATA = Limit(
    1e-4,
    "Probability with which a correct pair's random samples are called different where the sides cannot draw "
    "from one source: one permutation test of all statistics together, so that no number of them adds to it.",
    "tests/unit/judge/test_exchangeable.py: draws of one distribution, over many seeds.",
)
RANDOM_PLAIN = Limit(
    0.05,
    "Probability in a first look at random samples above which no more permutations are drawn: none of them "
    "could bring it down to the limit.",
)
RANDOM_EXPLAINED = Limit(
    0.01,
    "Probability that is left of a difference of random samples once a likely cause is taken out of it.",
)
SAME_PROBABILITY = Limit(
    0.01,
    "By which the probabilities of a step may differ on two sides: ten times what they are measured to.",
)
RANDOM_ALIKE = Limit(
    1e-4,
    "Of a statistic's size: draws that differ by less count as equal, as rounding tells none of them apart.",
)
SHARED_ALIKE = Limit(
    0.95,
    "Share of samples that must agree when both sides are given the same random numbers: a rounding may make "
    "a crop one pixel larger.",
)
