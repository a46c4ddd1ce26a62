"""Sequences of several lengths that the reference packs, and that the port's layer runs over to the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from parfocal.attribution.experiment import Prepare
from parfocal.backends import registry
from parfocal.explain.causes import Proof
from parfocal.explain.fixes import fixing
from parfocal.explain.fixes.calls import passing
from parfocal.explain.fixes.fixing import FixLine
from parfocal.explain.ops.log import Key, Op
from parfocal.explain.ops.op_comparison import OpComparison
from parfocal.explain.ops.proofs import line
from parfocal.explain.ops.writing import EditPlace, Writer
from parfocal.phrases import phrase

RECURRENT = frozenset({"RNN", "GRU", "LSTM", "RNNOverCell", "BiRNNOverCells"})
PACKING = "_pack_padded_sequence"
SHOWN = 6  # lengths that are told


def lengths_missing(scene: OpComparison) -> Iterator[Proof]:
    """A recurrent layer that would be right if it were told how long each sequence is."""
    word = registry.dialect(scene.case.backend.name).lengths_word
    packing = next((op for op in scene.counterparts if op.name == PACKING), None)
    if word is None or packing is None:
        return
    for op in scene.suspects:
        if not op.is_module or op.name not in RECURRENT or word in op.inputs:
            continue
        for key in _lengths(scene, op):
            lengths = scene.reference.values[key]
            score = scene.try_prepared(_told(scene, op, word, lengths))
            if score <= scene.case.limit:
                yield _proof(scene, op, packing, word, key, score)
                return


def _lengths(scene: OpComparison, op: Op) -> Iterator[Key]:
    """What may be the lengths: whole numbers, one for each sequence and none longer than there are places."""
    shape = scene.port.values[next(iter(op.inputs.values()))].shape
    for key, array in scene.reference.values.items():
        whole = array.dtype.kind in "iu" and array.ndim == 1 and array.size in shape[:2]
        if whole and int(array.min()) > 0 and int(array.max()) <= max(shape[:2]):
            yield key


def _told(scene: OpComparison, op: Op, word: str, lengths: Any) -> Prepare:
    """The layer inside a twin is called with the lengths besides."""
    own, path = scene.case.node.path, op.path or ""
    inner = path[len(own) + 1 :] if own else path

    def prepare(twin: Any) -> None:
        layer = scene.case.backend.modules(twin)[inner]
        forward = layer.forward

        def with_lengths(*args: Any, **kwargs: Any) -> Any:
            return forward(*args, **{**kwargs, word: scene.case.backend.from_array(lengths)})

        layer.forward = with_lengths

    return prepare


def _proof(scene: OpComparison, op: Op, packing: Op, word: str, key: Key, score: float) -> Proof:
    lengths = [int(value) for value in scene.reference.values[key]]
    told = ", ".join(map(str, lengths[:SHOWN])) + (", ..." if len(lengths) > SHOWN else "")
    message = phrase(
        "the sequences that {spelled} takes are {told} long in the reference, which packs them "
        "({line}); the port runs over all places ({there})",
        spelled=op.spelled,
        told=told,
        line=line(packing),
        there=line(op),
    )
    fix = phrase(
        "pass {word}= to {path} in {line}: {told}", word=word, path=op.path, line=line(op), told=told
    )
    spot = fixing.spot_of(op)
    if spot is not None:
        writer = Writer(scene, EditPlace(spot, None, op.index))
        text = writer.write(key, scene.reference.producers.get(key))
        patch = None if text is None else passing(spot, {word: text})
        fix = fix if patch is None else FixLine.of(patch)
    return Proof("op.missing", message, fix, score, op.where, packing.where)
