"""Padded sequences: the reference packs them by their lengths, the port's layer also reads the padding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from parfocal.attribution.experiment import Prepare
from parfocal.backends import registry
from parfocal.explain.causes import ProvenChange, line
from parfocal.explain.fixes import fixing
from parfocal.explain.fixes.calls import passing
from parfocal.explain.ops.log import Key, Op
from parfocal.explain.ops.op_comparison import OpComparison
from parfocal.explain.ops.writing import EditPlace, Writer
from parfocal.judge.verdict import Fix
from parfocal.phrases import phrase

RECURRENT = frozenset({"RNN", "GRU", "LSTM", "RNNOverCell", "BiRNNOverCells"})
PACKING = "_pack_padded_sequence"
SHOWN = 6  # lengths that are told


def lengths_missing(comparison: OpComparison) -> Iterator[ProvenChange]:
    """A recurrent layer that is right once it is passed the length of each sequence."""
    word = registry.dialect(comparison.case.backend.name).lengths_word
    packing = next((op for op in comparison.counterparts if op.name == PACKING), None)
    if word is None or packing is None:
        return
    for op in comparison.suspects:
        if not op.is_module or op.name not in RECURRENT or word in op.inputs:
            continue
        for key in _lengths(comparison, op):
            lengths = comparison.reference.values[key]
            score = comparison.try_prepared(_told(comparison, op, word, lengths))
            if score <= comparison.case.limit:
                yield _proof(comparison, op, packing, word, key, score)
                return


def _lengths(comparison: OpComparison, op: Op) -> Iterator[Key]:
    """Candidates for the lengths: positive integers, one per sequence, none above the padded length."""
    shape = comparison.port.values[next(iter(op.inputs.values()))].shape
    for key, array in comparison.reference.values.items():
        whole = array.dtype.kind in "iu" and array.ndim == 1 and array.size in shape[:2]
        if whole and int(array.min()) > 0 and int(array.max()) <= max(shape[:2]):
            yield key


def _told(comparison: OpComparison, op: Op, word: str, lengths: Any) -> Prepare:
    """A change that passes the lengths to the layer inside a twin."""
    own, path = comparison.case.node.path, op.path or ""
    inner = path[len(own) + 1 :] if own else path

    def prepare(twin: Any) -> None:
        layer = comparison.case.backend.modules(twin)[inner]
        forward = layer.forward

        def with_lengths(*args: Any, **kwargs: Any) -> Any:
            return forward(*args, **{**kwargs, word: comparison.case.backend.from_array(lengths)})

        layer.forward = with_lengths

    return prepare


def _proof(comparison: OpComparison, op: Op, packing: Op, word: str, key: Key, score: float) -> ProvenChange:
    lengths = [int(value) for value in comparison.reference.values[key]]
    told = ", ".join(map(str, lengths[:SHOWN])) + (", ..." if len(lengths) > SHOWN else "")
    message = phrase(
        "the sequences that {spelled} takes are {told} long in the reference, which packs them "
        "({line}); the port runs over all places ({there})",
        spelled=op.spelled,
        told=told,
        line=line(packing),
        there=line(op),
    )
    fix: Fix = phrase(
        "pass {word}= to {path} in {line}: {told}", word=word, path=op.path, line=line(op), told=told
    )
    spot = fixing.spot_of(op)
    if spot is not None:
        writer = Writer(comparison, EditPlace(spot, None, op.index))
        text = writer.write(key, comparison.reference.producers.get(key))
        patch = None if text is None else passing(spot, {word: text})
        fix = patch or fix
    return ProvenChange("op.missing", message, fix, score, op.where, packing.where)
