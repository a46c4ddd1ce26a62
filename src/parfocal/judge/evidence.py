"""How causes are proven, code by code, and what those rest on that are only likely.

The tests hold every cause that they bring about against this register; the page of codes shows it.
"""

from __future__ import annotations

from dataclasses import dataclass

from parfocal.judge.codes import CODES
from parfocal.judge.verdict import Grounds, Way


@dataclass(frozen=True, slots=True)
class Evidence:
    """How causes of one code are proven, and what those rest on that are only likely."""

    proven: tuple[Way, ...] = ()
    likely: tuple[Grounds, ...] = ()


_SETTING = Evidence((Way.REPLAYED, Way.RECOMPUTED), (Grounds.SETTINGS,))
_OP = Evidence((Way.REPLAYED,))
_RELATED_OP = Evidence((Way.REPLAYED, Way.RELATED), (Grounds.SETTINGS,))
_FORMULA = Evidence((Way.RECOMPUTED,))
_CURVE = Evidence((Way.RELATED,), (Grounds.VALUES,))
_UPDATE = Evidence((Way.RECOMPUTED,), (Grounds.SETTINGS, Grounds.VALUES))
_DRAWN = Evidence((), (Grounds.VALUES,))
_MISSING = Evidence((), (Grounds.STRUCTURE,))
# A code that only findings have, and no cause, is not here.
EVIDENCE: dict[str, Evidence] = {
    "weight.transposed": _CURVE,
    **dict.fromkeys(("weight.missing", "weight.extra"), _MISSING),
    "weight.mismatched": Evidence((Way.RELATED, Way.RECOMPUTED), (Grounds.VALUES,)),
    "weight.permuted": _CURVE,
    "weight.tied": Evidence((Way.RELATED,), (Grounds.STRUCTURE,)),
    **{name: _SETTING for name in CODES if name.startswith("config.")},
    **{name: _SETTING for name in CODES if name.startswith("op.")},
    **dict.fromkeys(("op.scale", "op.missing", "op.extra", "op.bias", "op.ceil_mode"), _RELATED_OP),
    "op.order": Evidence((Way.REPLAYED, Way.RELATED)),
    "op.activation": Evidence((Way.REPLAYED, Way.RECOMPUTED), (Grounds.SETTINGS, Grounds.CODE)),
    "op.kind": Evidence((Way.REPLAYED, Way.RECOMPUTED), (Grounds.STRUCTURE, Grounds.CODE)),
    "mode.training": _SETTING,
    "random.source": _OP,
    "random.dropout": Evidence((Way.REPLAYED,), (Grounds.SETTINGS, Grounds.VALUES)),
    "dtype.precision": Evidence((Way.REPLAYED, Way.RELATED), (Grounds.VALUES, Grounds.SETTINGS)),
    "dtype.bits": Evidence((Way.RELATED, Way.RECOMPUTED)),
    "layout.permuted": Evidence((Way.REPLAYED, Way.RELATED), (Grounds.VALUES,)),
    "buffer.running_variance": Evidence((Way.RELATED,)),
    "buffer.momentum": Evidence((Way.REPLAYED, Way.RECOMPUTED)),
    "loss.reduction": Evidence((Way.RECOMPUTED, Way.RELATED)),
    "loss.ignore_index": Evidence((Way.RECOMPUTED,), (Grounds.VALUES,)),
    **dict.fromkeys(("loss.label_smoothing", "loss.beta", "loss.input"), _FORMULA),
    "loss.weight": Evidence((Way.RECOMPUTED, Way.RELATED), (Grounds.VALUES,)),
    "grad.scale": Evidence((Way.REPLAYED, Way.RELATED)),
    "grad.detached": Evidence((Way.REPLAYED,), (Grounds.CODE,)),
    "grad.accumulated": Evidence((Way.RECOMPUTED, Way.RELATED), (Grounds.SETTINGS,)),
    "grad.clip": Evidence((Way.REPLAYED, Way.RECOMPUTED, Way.RELATED), (Grounds.VALUES,)),
    "grad.tie": Evidence((Way.RELATED,)),
    "grad.function": _OP,
    **{name: _UPDATE for name in CODES if name.startswith("optim.")},
    "optim.weight_decay": Evidence((Way.RECOMPUTED, Way.RELATED), (Grounds.SETTINGS, Grounds.VALUES)),
    "optim.lr_group": Evidence((Way.RECOMPUTED, Way.RELATED), (Grounds.SETTINGS, Grounds.VALUES)),
    **{name: _CURVE for name in CODES if name.startswith("lr.")},
    **{name: _CURVE for name in CODES if name.startswith("data.")},
    "data.length": Evidence((Way.RELATED,), (Grounds.VALUES, Grounds.SETTINGS)),
    **dict.fromkeys(("data.resize", "data.colour"), _DRAWN),
    **{name: _FORMULA for name in CODES if name.startswith("metric.")},
    "metric.unit": Evidence((Way.RECOMPUTED, Way.RELATED)),
    "metric.value": Evidence((Way.RECOMPUTED,), (Grounds.VALUES,)),
    **{name: _DRAWN for name in CODES if name.startswith("init.")},
    "dist.reduction": Evidence((Way.RELATED, Way.RECOMPUTED)),
    "dist.batch_scale": Evidence((Way.RELATED, Way.RECOMPUTED), (Grounds.VALUES,)),
    "dist.sampler": _CURVE,
    "dist.rank": _DRAWN,
    "dist.batch_norm": Evidence((Way.RECOMPUTED,), (Grounds.SETTINGS,)),
}
