"""Parameters that are one tensor under two names on one side, and two tensors on the other."""

from __future__ import annotations

from collections.abc import Mapping

from parfocal.judge.verdict import Cause, Claim, Grounds
from parfocal.phrases import phrase
from parfocal.workflow.recorded_runs.parameters import ParameterTie
from parfocal.workflow.recorded_runs.steps import RecordedStep


def tied_otherwise(tie: ParameterTie, reference: RecordedStep, port: RecordedStep) -> Cause | None:
    """One tensor under two names on one side, two tensors on the other."""
    if not (reference.parameters and port.parameters):
        return None  # ties are recorded with the parameters
    ours, theirs = _other_names(reference.ties, tie.reference), _other_names(port.ties, tie.port)
    if bool(ours) == bool(theirs):
        return None
    if theirs:
        message = phrase(
            "{port} is the same tensor as {theirs} in the port, and not so in the reference",
            port=tie.port,
            theirs=theirs[0],
        )
        fix = phrase("give {port} a parameter of its own", port=tie.port)
        return Claim("weight.tied", message, fix).likely(Grounds.STRUCTURE)
    message = phrase(
        "{reference} is the same tensor as {ours} in the reference, and not so in the port",
        reference=tie.reference,
        ours=ours[0],
    )
    fix = phrase("make {port} the same parameter as in the reference", port=tie.port)
    return Claim("weight.tied", message, fix).likely(Grounds.STRUCTURE)


def _other_names(ties: Mapping[str, str], path: str) -> list[str]:
    first = ties.get(path, path)
    names = [first, *(name for name, origin in ties.items() if origin == first)]
    return [name for name in names if name != path and not _within_one(name, path)]


def _within_one(name: str, path: str) -> bool:
    """Whether a module has its own part's parameter under a name of its own, as recurrent layers do."""
    owners = sorted((name.rpartition(".")[0], path.rpartition(".")[0]), key=len)
    return bool(owners[0]) and f"{owners[1]}.".startswith(f"{owners[0]}.")
