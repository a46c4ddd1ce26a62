"""The steps of all ranks of two runs, side by side: rank by rank, or each launch as one process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from parfocal.errors import InputError
from parfocal.judge.verdict import side_name
from parfocal.phrases import phrase
from parfocal.report.coverage import LeftOut, Reason
from parfocal.run.reader import Run
from parfocal.workflow.recorded_runs.gathering import gather_ranks, same_calls
from parfocal.workflow.recorded_runs.reading import StepRecords, pair_steps, read_steps
from parfocal.workflow.recorded_runs.reductions import with_reduction
from parfocal.workflow.recorded_runs.steps import RecordedStep, build_step

Steps = list[tuple[RecordedStep, RecordedStep]]


@dataclass(frozen=True, slots=True)
class LaunchRecords:
    """What all ranks recorded of one step."""

    step: int
    ranks: Mapping[int, StepRecords]


@dataclass(frozen=True, slots=True)
class Launches:
    """Which ranks of two runs are compared, and how."""

    reference: Run
    port: Run
    ranks: tuple[tuple[int, ...], tuple[int, ...]]
    together: bool  # each launch as one process
    left_out: tuple[LeftOut, ...] = ()

    @staticmethod
    def of(reference: Run, port: Run, wanted: int | None) -> Launches:
        common = tuple(rank for rank in reference.ranks if rank in port.ranks)
        if wanted is not None:
            if wanted not in common:
                raise InputError(
                    phrase(
                        "rank {wanted} is not in both runs: the reference has {reference}, the port {port}",
                        wanted=wanted,
                        reference=reference.ranks,
                        port=port.ranks,
                    )
                )
            return Launches(reference, port, ((wanted,), (wanted,)), False)
        counts = reference.header.ranks, port.header.ranks
        whole = all(len(run.ranks) == count for run, count in zip((reference, port), counts, strict=True))
        if whole and counts[0] != counts[1]:
            return Launches(reference, port, (reference.ranks, port.ranks), True)
        left_out = tuple(
            LeftOut(phrase("rank {rank}", rank=rank), reason)
            for reason, run, other in (
                (Reason.ONLY_REFERENCE, port, reference),
                (Reason.ONLY_PORT, reference, port),
            )
            for rank in run_only(other, run)
        )
        return Launches(reference, port, (common, common), False, left_out)

    def steps(self) -> Iterator[tuple[LaunchRecords | None, LaunchRecords | None]]:
        """Step by step, None where only one run has the step."""
        return pair_steps(_read_launch(self.reference, self.ranks[0]), _read_launch(self.port, self.ranks[1]))

    def pairs(self, ours: LaunchRecords, theirs: LaunchRecords) -> Steps:
        """The recorded steps that are compared with each other."""
        reference, port = _built(self.reference, ours), _built(self.port, theirs)
        if not self.together:
            left, right = ({each.rank: each for each in side} for side in (reference, port))
            return [(left[rank], right[rank]) for rank in left if rank in right]
        if len(port) < 2:
            return [(gather_ranks(reference, port[0]), port[0])]
        whole = gather_ranks(reference, None)
        return [(whole, gather_ranks(port, whole))]

    def cannot_gather(self, ours: LaunchRecords, theirs: LaunchRecords) -> tuple[LeftOut, ...]:
        """Ranks of a launch that cannot be put together with rank 0."""
        if not self.together:
            return ()
        sides = ((self.reference, ours, "reference"), (self.port, theirs, "port"))
        return tuple(
            LeftOut(
                phrase("ranks of the {name}", name=side_name(name)),
                Reason.IMPOSSIBLE,
                phrase("they do not call the same layers as rank 0"),
            )
            for run, records, name in sides
            if not same_calls([build_step(run, rank, each) for rank, each in records.ranks.items()])
        )


def run_only(run: Run, other: Run) -> list[int]:
    """Ranks that only this run has."""
    return sorted(set(run.ranks) - set(other.ranks))


def _built(run: Run, records: LaunchRecords) -> Sequence[RecordedStep]:
    return with_reduction([build_step(run, rank, each) for rank, each in records.ranks.items()])


def _read_launch(run: Run, ranks: Sequence[int]) -> Iterator[LaunchRecords]:
    """Every step that any of the ranks has, in order."""
    streams = {rank: read_steps(run, rank) for rank in ranks}
    waiting = {rank: next(stream, None) for rank, stream in streams.items()}
    while any(each is not None for each in waiting.values()):
        step = min(each.step for each in waiting.values() if each is not None)
        found = {rank: each for rank, each in waiting.items() if each is not None and each.step == step}
        for rank in found:
            waiting[rank] = next(streams[rank], None)
        yield LaunchRecords(step, found)
