"""How causes are proven, code by code, and what those rest on that are only likely.

The tests hold every cause that they bring about against this register; the page of codes shows it.
"""

from __future__ import annotations

from dataclasses import dataclass

from parfocal.judge.codes import CODES
from parfocal.judge.verdict import Grounds, ProvenBy


@dataclass(frozen=True, slots=True)
class Evidence:
    """How causes of one code are proven, and what those rest on that are only likely."""

    proven: tuple[ProvenBy, ...] = ()
    likely: tuple[Grounds, ...] = ()


_SETTING = Evidence((ProvenBy.REPLAYED, ProvenBy.RECOMPUTED), (Grounds.SETTINGS, Grounds.CODE))
_OP = Evidence((ProvenBy.REPLAYED,))
_RELATED_OP = Evidence((ProvenBy.REPLAYED, ProvenBy.RELATED), (Grounds.SETTINGS,))
_FORMULA = Evidence((ProvenBy.RECOMPUTED,))
_CURVE = Evidence((ProvenBy.RELATED,), (Grounds.VALUES,))
_UPDATE = Evidence((ProvenBy.RECOMPUTED,), (Grounds.SETTINGS, Grounds.VALUES))
_DRAWN = Evidence((), (Grounds.VALUES,))
_MISSING = Evidence((), (Grounds.STRUCTURE,))
# A code that only findings have, and no cause, is not here.
EVIDENCE: dict[str, Evidence] = {
    "weight.transposed": _CURVE,
    **dict.fromkeys(("weight.missing", "weight.extra"), _MISSING),
    "weight.mismatched": Evidence((ProvenBy.RELATED, ProvenBy.RECOMPUTED), (Grounds.VALUES,)),
    "weight.permuted": _CURVE,
    "weight.tied": Evidence((ProvenBy.RELATED,), (Grounds.STRUCTURE,)),
    **{name: _SETTING for name in CODES if name.startswith("config.")},
    **{name: _SETTING for name in CODES if name.startswith("op.")},
    **dict.fromkeys(("op.scale", "op.missing", "op.extra", "op.bias", "op.ceil_mode"), _RELATED_OP),
    "op.order": Evidence((ProvenBy.REPLAYED, ProvenBy.RELATED), (Grounds.CODE,)),
    "op.activation": Evidence((ProvenBy.REPLAYED, ProvenBy.RECOMPUTED), (Grounds.SETTINGS, Grounds.CODE)),
    "op.kind": Evidence((ProvenBy.REPLAYED, ProvenBy.RECOMPUTED), (Grounds.STRUCTURE, Grounds.CODE)),
    "mode.training": _SETTING,
    "random.source": _OP,
    "random.dropout": Evidence((ProvenBy.REPLAYED,), (Grounds.SETTINGS, Grounds.VALUES)),
    "dtype.precision": Evidence((ProvenBy.REPLAYED, ProvenBy.RELATED), (Grounds.VALUES, Grounds.SETTINGS)),
    "dtype.bits": Evidence((ProvenBy.RELATED, ProvenBy.RECOMPUTED)),
    "layout.permuted": Evidence((ProvenBy.REPLAYED, ProvenBy.RELATED), (Grounds.VALUES,)),
    "buffer.running_variance": Evidence((ProvenBy.RELATED,)),
    "buffer.momentum": Evidence((ProvenBy.REPLAYED, ProvenBy.RECOMPUTED)),
    "loss.reduction": Evidence((ProvenBy.RECOMPUTED, ProvenBy.RELATED, ProvenBy.REPLAYED)),
    "loss.ignore_index": Evidence((ProvenBy.RECOMPUTED, ProvenBy.REPLAYED), (Grounds.VALUES,)),
    "loss.label_smoothing": Evidence((ProvenBy.RECOMPUTED, ProvenBy.REPLAYED)),
    **dict.fromkeys(("loss.beta", "loss.input"), _FORMULA),
    "loss.weight": Evidence((ProvenBy.RECOMPUTED, ProvenBy.RELATED), (Grounds.VALUES,)),
    "loss.offset": Evidence((ProvenBy.RECOMPUTED, ProvenBy.RELATED)),
    "grad.scale": Evidence((ProvenBy.REPLAYED, ProvenBy.RELATED)),
    "grad.detached": Evidence((ProvenBy.REPLAYED,), (Grounds.CODE,)),
    "grad.accumulated": Evidence((ProvenBy.RECOMPUTED, ProvenBy.RELATED), (Grounds.SETTINGS,)),
    "grad.clip": Evidence((ProvenBy.REPLAYED, ProvenBy.RECOMPUTED, ProvenBy.RELATED), (Grounds.VALUES,)),
    "grad.tie": Evidence((ProvenBy.RELATED,)),
    "grad.function": _OP,
    **{name: _UPDATE for name in CODES if name.startswith("optim.")},
    "optim.weight_decay": Evidence(
        (ProvenBy.RECOMPUTED, ProvenBy.RELATED), (Grounds.SETTINGS, Grounds.VALUES)
    ),
    "optim.lr_group": Evidence((ProvenBy.RECOMPUTED, ProvenBy.RELATED), (Grounds.SETTINGS, Grounds.VALUES)),
    **{name: _CURVE for name in CODES if name.startswith("lr.")},
    **{name: _CURVE for name in CODES if name.startswith("data.")},
    "data.length": Evidence((ProvenBy.RELATED,), (Grounds.VALUES, Grounds.SETTINGS)),
    **dict.fromkeys(("data.resize", "data.colour"), _DRAWN),
    "data.setting": Evidence((), (Grounds.SETTINGS,)),
    **{name: _FORMULA for name in CODES if name.startswith("metric.")},
    "metric.unit": Evidence((ProvenBy.RECOMPUTED, ProvenBy.RELATED)),
    "metric.value": Evidence((ProvenBy.RECOMPUTED,), (Grounds.VALUES,)),
    **{name: _DRAWN for name in CODES if name.startswith("init.")},
    "dist.reduction": Evidence((ProvenBy.RELATED, ProvenBy.RECOMPUTED)),
    "dist.batch_scale": Evidence((ProvenBy.RELATED, ProvenBy.RECOMPUTED), (Grounds.VALUES,)),
    "dist.sampler": _CURVE,
    "dist.rank": _DRAWN,
    "dist.batch_norm": Evidence((ProvenBy.RECOMPUTED,), (Grounds.SETTINGS,)),
}
