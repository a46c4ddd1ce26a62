"""What makes two calls a pair, and work that is divided otherwise no mistake."""

from __future__ import annotations

from parfocal.judge.limits.entry import Limit

SAME_VALUES = Limit(
    1e-3,
    "Fingerprints this close belong to the same values, up to rounding in a deep model.",
)
FAR_VALUES = Limit(
    0.1,
    "Values further apart say nothing about which is which: one of them is wrong.",
)
ROUNDED_VALUES = Limit(
    1e-5,
    "Values nearer than this say nothing about which is which either: that is rounding.",
)
EQUALLY_NEAR = Limit(
    1.01,
    "Times the distance of the nearest value: one as far as that is as near, and its place and name decide. "
    "Sums in another order differ in their last digits only.",
)
WITNESS_ALIKE = Limit(
    1e-4,
    "Relative to the reference's: values this close have one fingerprint for all that calls are paired by.",
)
SHELF_WIDTH = Limit(
    1.01,
    "Of a shelf, times SAME_VALUES, of the logarithm: three figures that each differ by at most that "
    "of the larger one need a little more.",
    "follows from the arithmetic.",
)
COMMON_SHARE = Limit(
    0.5,
    "Of the paired calls inside two containers that must be common to both.",
)
HEALING = Limit(
    6,
    "Calls in a row that must be the same again behind calls that were divided otherwise.",
)
CLEARLY_OTHER = Limit(
    10.0,
    "Times SAME_VALUES: a small mistake may fade on the way, work that is done elsewhere is no small "
    "difference.",
)
FUSED_STEPS = Limit(
    3,
    "Calls that one fused call may stand for, beyond the first.",
)
FOLLOWED_BEHIND = Limit(
    16,
    "Calls before the expected place at which a counterpart in another recorded run is looked for.",
)
FOLLOWED_AHEAD = Limit(
    64,
    "Calls behind the expected place at which it is looked for.",
)
FOLLOWED_OTHER = Limit(
    0.5,
    "Relative distance of the inputs above which they are not those of the same call.",
)
REPAIR_NEAR = Limit(
    8.0,
    "Times CALL, by the cheapest floor alone: a repaired pair is measured properly afterwards.",
)
REPAIR_LEFT = Limit(
    0.1,
    "Of an error that is gone, but for others in the same call.",
)
MASKED_SCORE = Limit(
    -1e3,
    "What is added to a score of attention that is not to count is at most this: exp of it is 0 in "
    "every dtype.",
    "follows from the arithmetic.",
)
DIVIDED_CLEARLY = Limit(
    1e-4,
    "Of the value: work that is done elsewhere is no small difference.",
)
DIVIDED_ALMOST = Limit(
    1e-3,
    "Of the value: two values with a small mistake between them, where the mistake shows elsewhere.",
)
DIVIDED_NEARER = Limit(
    1e-2,
    "Of the difference at a border: values so much nearer belong together, whatever the mistake.",
    "reasoned, not measured; with it 95 pairs with one fused layer in eval mode are blamed rightly.",
)
DIVIDED_RESOLVED = Limit(
    1e-2,
    "Share of the difference at a border that must be seen behind it.",
    "with all limits of divisions: of 144 correct pairs with work done elsewhere none is DIFFERENT, "
    "all of 274 mistakes beside such work are found.",
)
BORDERS_ALONE = Limit(
    4,
    "Borders of one call that are tried one by one where they cannot be told together.",
)
AGREE_BY_CHANCE = Limit(
    8,
    "Numbers (or moved, different or equal ones) that may agree by chance: fewer prove nothing.",
)
EQUAL_IN_FLOAT64 = Limit(
    1e-11,
    "Relative distance of values that are equal in float64 but for the order of a sum.",
)
REACHED_OPS = Limit(
    16,
    "Ops behind a value: later than that, what is made of it is no longer the same work. A norm by "
    "hand takes ten.",
)
