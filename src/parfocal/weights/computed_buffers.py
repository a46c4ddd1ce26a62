"""Buffers that a model's own code makes: tables of indices, frequencies, masks.

Copying the reference's over the port's would hide a port that makes them wrong. What no checkpoint
holds, and whole numbers that are not all the same, stay as the port made them. Other buffers are state
and are copied; where the port had made something else of them, that is told.
"""

from __future__ import annotations

import numpy as np

from parfocal.judge import limits
from parfocal.phrases import phrase
from parfocal.weights import views
from parfocal.weights.draft import Draft
from parfocal.weights.linking import Link, entries_of
from parfocal.weights.writer import WritableModel

CLOSE = limits.transfer.COMPUTED_CLOSE.value


def leave_what_is_made(draft: Draft, reference: WritableModel, port: WritableModel) -> list[str]:
    """Take the links of such buffers out of a draft; notes of those that are copied over other values."""
    notes = []
    for path, link in list(draft.links.items()):
        if link.port.family != "buffer" or _same(link, reference, port):
            continue
        if _is_made(link, reference, port):
            del draft.links[path]
        elif _is_filled(port.array(link.port.slots[0].memory)):
            notes.append(
                phrase(
                    "buffer {path} held other values than {reference_path} of the reference, now copied: if "
                    "it is the port's code that makes them, it makes something else",
                    path=path,
                    reference_path=link.reference.path,
                )
            )
    return notes


def _is_made(link: Link, reference: WritableModel, port: WritableModel) -> bool:
    source, target = link.reference.slots[0].memory, link.port.slots[0].memory
    if not (reference.tensors[source].persistent and port.tensors[target].persistent):
        return True
    array = port.array(target)
    return array.dtype.kind in "iub" and _is_filled(array)


def _is_filled(array: views.Array) -> bool:
    """Whether it holds more than a placeholder: values that are not all the same."""
    return array.size > 1 and bool((array != array.flat[0]).any())


def _same(link: Link, reference: WritableModel, port: WritableModel) -> bool:
    for entry in entries_of(link):
        ours = views.apply(entry.source_view, reference.array(entry.source))
        theirs = views.apply(entry.target_view, port.array(entry.target))
        if ours.shape != theirs.shape:
            return False
        if ours.dtype.kind in "iub" or theirs.dtype.kind in "iub":
            if not np.array_equal(ours, theirs):
                return False
        elif not np.allclose(ours, theirs, rtol=CLOSE, atol=CLOSE * float(np.abs(ours).max(initial=0.0))):
            return False
    return True
