"""What decides which weight goes where."""

from __future__ import annotations

from parfocal.judge.limits.entry import Limit

TRUSTED_NAME = Limit(
    0.5,
    "A likeness of names below this says nothing.",
)
NAME_MARGIN = Limit(
    0.08,
    "By how much the best name must beat the next one.",
)
SAME_KIND = Limit(
    0.02,
    "What an equal kind adds to a likeness, where shapes agree already.",
)
GUESSED = Limit(
    0.3,
    "The confidence of a link that nothing speaks for.",
)
CONFIDENT = Limit(
    0.9,
    "A link this sure needs no equal values.",
)
STEALABLE = Limit(
    0.75,
    "Links below this confidence may be undone for a better explanation.",
)
NEIGHBOURS = Limit(
    16,
    "Units or companies that are looked at for one layer, those at about its place, where none has "
    "the very same input.",
)
COMPUTED_CLOSE = Limit(
    1e-4,
    "Relative: what one and the same formula may give in two frameworks.",
)
USUAL_NOISE = Limit(
    2e-3,
    "Relative difference that rounding alone may cause after many layers in float32.",
)
SAME_TENSOR = Limit(
    0.05,
    "Inputs this close are the same tensor after a small difference upstream.",
)
NEXT_BEST = Limit(
    5.0,
    "How much farther the next best unit must be.",
)
FUSED_LAYERS = Limit(
    12,
    "Layers fused on both sides that are tried at once.",
)
LAYOUT_CALLS = Limit(
    4000,
    "Calls of modules in all trials of layouts: many of a block, few of a whole model.",
)
WEIGHED = Limit(
    64,
    "Units of a side in one piece; a dozen blocks, so that neighbours are weighed too.",
)
INDEX_FEW = Limit(
    32,
    "Units of one size: looking at all of these is as quick as an index.",
)
INDEX_SLACK = Limit(
    5.0,
    "Numbers that are relative to themselves differ by less than this times what ``distance`` says.",
    "follows from the definition of the distance.",
)
TRUSTED_ORDER = Limit(
    0.9,
    "Share of units that lie in the same order, for order to count.",
)
ORDER_STRETCH = Limit(
    256,
    "Units that are compared at a time: more than the layers that one side may have between.",
)
ORDER_EDITS = Limit(
    64,
    "Units that the sides may lack together; where it is more, order is compared stretch by stretch.",
)
PARTS = Limit(
    4,
    "Parts of a fused tensor, groups or series of a stack, axes of a stacked tensor that are looked "
    "at in every order: 24 each.",
    "follows from 4! = 24.",
)
OPTIONS = Limit(
    64,
    "Layouts of a fused or stacked tensor, as many as are tried in one module.",
)
MANY_SERIES = Limit(
    16,
    "Series of a list: then two in one stack at most.",
)
COVERS = Limit(
    8,
    "Ways to cover a stack by series that are kept.",
)
COVER_STEPS = Limit(
    4000,
    "Steps of the search for a cover.",
)
COVER_LAYOUTS = Limit(
    256,
    "Combinations of layouts for one cover.",
)
PASSES = Limit(
    3,
    "Passes of a transfer: what one explains, the next builds upon.",
)
TRIALS = Limit(
    64,
    "Trials in one scope. The longest list of usual ways (three stacks of square matrices in either "
    "layout, four gates in any order and interleaved) has some 50; what comes later is hardly ever "
    "right.",
    "40 pairs of attention, routed MLPs and recurrent cells by hand get the weights that the correct "
    "port gets.",
)
TRIALS_AGAIN = Limit(
    8,
    "Trials in a scope with a subject for which nothing fitted further inside, or in another block.",
    "the same 40 pairs.",
)
ALL_TRIALS = Limit(
    160,
    "Trials in one transfer, all passes together; some milliseconds each.",
    "the same 40 pairs.",
)
CHECKED = Limit(
    24,
    "Alternatives tried to a choice that fits.",
)
TIED = Limit(
    4,
    "Parts that are alike by name of which all 24 orders count as ways; of more one order counts.",
    "follows from 4! = 24.",
)
CLEARLY_NEARER = Limit(
    30.0,
    "Times nearer than another: that is no longer as good.",
)
ROUNDED = Limit(
    1e-5,
    "Outputs nearer than this differ by rounding alone.",
)
BETTER_GUESS = Limit(
    0.5,
    "Of what the usual option lacks in likeness: then another is the better guess.",
)
ALIKE = Limit(
    0.8,
    "A cosine; what is less like its twin is like it by chance.",
)
