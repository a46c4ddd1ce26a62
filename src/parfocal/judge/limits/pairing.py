"""What makes two calls a pair."""

from __future__ import annotations

from parfocal.judge.limits.entry import Limit

SAME_VALUES = Limit(1e-3)
FAR_VALUES = Limit(0.1)
ROUNDED_VALUES = Limit(1e-5)
EQUALLY_NEAR = Limit(1.01)
WITNESS_ALIKE = Limit(1e-4)
SHELF_WIDTH = Limit(1.01)
COMMON_SHARE = Limit(0.5)
HEALING = Limit(6)
CLEARLY_OTHER = Limit(10.0)
FUSED_STEPS = Limit(3)
FOLLOWED_BEHIND = Limit(16)
FOLLOWED_AHEAD = Limit(64)
FOLLOWED_OTHER = Limit(0.5)
REPAIR_NEAR = Limit(8.0)
REPAIR_LEFT = Limit(0.1)
MASKED_SCORE = Limit(-1e3)
DIVIDED_CLEARLY = Limit(1e-4)
DIVIDED_ALMOST = Limit(1e-3)
DIVIDED_NEARER = Limit(1e-2)
DIVIDED_RESOLVED = Limit(1e-2)
BORDERS_ALONE = Limit(4)
AGREE_BY_CHANCE = Limit(8)
EQUAL_IN_FLOAT64 = Limit(1e-11)
REACHED_OPS = Limit(16)
