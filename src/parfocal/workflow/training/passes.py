"""One step up to its gradients: data, forward, loss and backward, each on what the reference had there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from parfocal.attribution.sides import tied_outputs
from parfocal.backends.protocol import Array
from parfocal.errors import InputError
from parfocal.judge.floors import NOTHING, Size
from parfocal.judge.layouts import Layout, fit
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.verdict import Divergence, Site, side_name
from parfocal.phrases import phrase
from parfocal.workflow.nonfinite import first_nonfinite
from parfocal.workflow.training.batches import Batch, arrays_of
from parfocal.workflow.training.carrying import Carrier
from parfocal.workflow.training.data_phase import compare_inputs
from parfocal.workflow.training.found import FoundDivergences
from parfocal.workflow.training.judging import Noise, RemeasuredStep, Verdict
from parfocal.workflow.training.sides import Arrays, TrainingSide

OF_THE_LOSS = frozenset({"loss", "backward"})  # phases


@dataclass(slots=True)
class Passes:
    """Forward and backward of both sides for every batch of a step, and what is wrong with them."""

    reference: TrainingSide
    port: TrainingSide
    carrier: Carrier
    noise: Noise
    found: FoundDivergences
    ties: dict[str, tuple[str, Layout]] | None = None  # output slot of the port -> that of the reference
    counts: dict[str, int] = field(default_factory=dict)
    step: int = 0
    wrong: set[str] = field(default_factory=set)  # phases that part at this step for the first time
    losses: tuple[float, float] = (math.nan, math.nan)
    output: Array | None = None  # of the reference, where it gives one tensor, for ``pair``
    pair: tuple[Batch, Batch] | None = None  # the first batch of the step whose loss parts, or the last
    left: Arrays = field(default_factory=dict)  # gradients of the port that were there before
    sums: list[Arrays] = field(default_factory=list)  # the reference's gradients after every batch

    def run(self, step: int, batches: Sequence[tuple[Batch, Batch]]) -> None:
        """Gradients of both sides are there afterwards, the port's still its own."""
        self.step, self.wrong, self.sums = step, set(), []
        self.noise.begin(self.reference.arrays("buffer", copy=True))
        self.left = {path: array.copy() for path, array in self.port.gradients().items() if array.any()}
        for number, (ours, theirs) in enumerate(batches):
            parted = bool(self.wrong & OF_THE_LOSS)
            mine = self._forward(ours) if number < self.reference.accumulate else None
            if mine is not None and not parted:
                outputs = list(mine[0].values())
                self.output, self.pair = outputs[0] if len(outputs) == 1 else None, (ours, theirs)
            if number < self.port.accumulate:
                self._follow(ours, theirs, mine)
            if max(self.reference.accumulate, self.port.accumulate) > 1:
                self.sums.append(self.reference.gradients(copy=True))

    def _forward(self, batch: Batch) -> tuple[Arrays, float, Arrays, Batch]:
        side = self.reference
        self.noise.add_batch(batch)
        output = side.forward(batch)
        tensors = side.outputs(output)
        arrays = {slot: side.backend.to_array(tensor) for slot, tensor in tensors.items()}
        entering: Arrays = {}
        for slot, tensor in tensors.items():
            side.backend.watch_gradient(tensor, partial(self._keep, entering, slot))
        self.noise.begin_loss(output, arrays, batch.label)
        loss = side.loss_of(output, batch.label)
        value = float(side.backend.to_array(loss).reshape(-1)[0])
        if not math.isfinite(value):
            where = self._where_not_finite(side, batch)
            raise InputError(
                phrase(
                    "the loss of the reference is {value} at step {step}; the first that is not "
                    "finite is {where}",
                    value=value,
                    step=self.step,
                    where=where,
                ),
                hint=phrase(
                    "a comparison with NaN or infinity says nothing: look at this tensor, or at the rate"
                ),
            )
        side.backward(loss)
        self.losses = value, self.losses[1]
        return arrays, value, entering, batch

    def _keep(self, entering: Arrays, slot: str, gradient: Any) -> None:
        entering[slot] = self.reference.backend.to_array(gradient)

    def _follow(self, ours: Batch, theirs: Batch, mine: tuple[Arrays, float, Arrays, Batch] | None) -> None:
        side = self.port
        for key, divergence in compare_inputs(ours, theirs, self.sites(), self.step):
            if not self.found.seen(key):
                self.wrong.add("data")
                self.found.add(key, divergence)
        self.add_count("batches")
        output = side.forward(theirs)
        tensors = side.outputs(output)
        if mine is None:  # a batch more than the reference takes: only its gradient is of interest
            side.backward(side.loss_of(output, theirs.label))
            return
        arrays, value, entering, _ = mine
        values = {slot: side.backend.to_array(tensor, copy=False) for slot, tensor in tensors.items()}
        if self.ties is None:
            self.ties = self._tied(arrays, values)
        expected: Arrays = {}
        for slot, (name, known) in list(self.ties.items()):
            if slot not in values or name not in arrays:
                continue
            layout = _laid_out(known, arrays[name], values[slot])
            if layout is None:
                self._tell_shape(slot, values[slot], arrays[name], name)
                continue
            self.ties[slot] = (name, layout)
            expected[slot] = np.ascontiguousarray(layout.apply(arrays[name]))
            self._judge_output(slot, values[slot], expected[slot], name, layout)
        led, leaves = side.led(output, expected)
        for slot, leaf in leaves.items():
            name, layout = self.ties[slot]
            if name in entering and side.backend.requires_grad(leaf):
                side.backend.watch_gradient(leaf, partial(self._enter, slot, layout.apply(entering[name])))
        loss = side.loss_of(led, theirs.label)
        own = float(side.backend.to_array(loss).reshape(-1)[0])
        self.losses = self.losses[0], own
        self._judge_loss(own, value, theirs)
        side.backward(loss)

    def _tied(self, ours: Arrays, theirs: Arrays) -> dict[str, tuple[str, Layout]]:
        tied = tied_outputs(ours, theirs)
        known = {name for name, _ in tied.values()}
        lacking = [slot for slot in ours if slot not in known]
        for slot, name in zip([each for each in theirs if each not in tied], lacking, strict=False):
            if theirs[slot].shape == ours[name].shape:  # other values in the same place
                tied[slot] = (name, Layout(None, ours[name].shape))
        if not tied:
            shapes = [", ".join(str(list(each.shape)) for each in side.values()) for side in (ours, theirs)]
            raise InputError(
                phrase(
                    "no output of the port stands for one of the reference: {port} against {reference}",
                    port=shapes[1],
                    reference=shapes[0],
                ),
                hint=phrase("both models must give the same outputs"),
            )
        return tied

    def _judge_output(self, slot: str, observed: Array, expected: Array, name: str, layout: Layout) -> None:
        def again(results: RemeasuredStep) -> Array | None:
            found = results.outputs.get(name)
            return None if found is None else layout.apply(found)

        verdict = self.noise.judge(("output", name), observed, expected, again)
        what = "output" + (f" {slot}" if slot else "")
        self.add_count("outputs")
        self._report("forward", ("forward", name), what, observed, expected, verdict)

    def _tell_shape(self, slot: str, observed: Array, expected: Array, name: str) -> None:
        """An output that had the reference's shape for the batches before, and has it no more."""
        message = phrase(
            "shape {port} in the port, {reference} in the reference",
            port=list(observed.shape),
            reference=list(expected.shape),
        )
        what = "output" + (f" {slot}" if slot else "")
        verdict = Verdict(math.inf, NOTHING, True)
        self.add_count("outputs")
        self._report("forward", ("forward", name), what, observed, expected, verdict, message)

    @staticmethod
    def _where_not_finite(side: TrainingSide, batch: Batch) -> str:
        arrays = arrays_of(batch.inputs)
        found = first_nonfinite(side.backend, side.model, side.words, arrays, lambda: side.forward(batch))
        return found or phrase("the loss of the {side} itself", side=side_name(side.words))

    def _judge_loss(self, own: float, value: float, batch: Batch) -> None:
        observed, expected = np.array(own, np.float32), np.array(value, np.float32)
        if not math.isfinite(own):
            where = self._where_not_finite(self.port, batch)
            message = phrase(
                "the port's loss is {own}; the first that is not finite is {where}", own=own, where=where
            )
            verdict = Verdict(math.inf, NOTHING, True)
            self._report("loss", ("loss",), phrase("the loss"), observed, expected, verdict, message)
            return
        verdict = self.noise.judge(
            ("loss",), observed, expected, lambda results: np.array(results.loss, np.float32), of_loss=True
        )
        message = phrase(
            "{reference} in the reference, {port} in the port", reference=f"{value:.7g}", port=f"{own:.7g}"
        )
        self.add_count("losses")
        self._report("loss", ("loss",), phrase("the loss"), observed, expected, verdict, message)

    def _enter(self, slot: str, right: Array, gradient: Any) -> Any:
        """The gradient that enters the model: judged, and from here on the reference's."""
        side = self.port
        observed = side.backend.to_array(gradient)
        expected = np.ascontiguousarray(right.reshape(observed.shape))
        assert self.ties is not None
        name, layout = self.ties[slot]

        def again(results: RemeasuredStep) -> Array | None:
            found = results.entering.get(name)
            return None if found is None else layout.apply(found)

        verdict = self.noise.judge(("entering", slot), observed, expected, again, of_loss=True)
        what = phrase("gradient of the loss by output") + (f" {slot}" if slot else "")
        self._report("backward", ("entering", slot), what, observed, expected, verdict)
        return side.backend.cast(side.backend.from_array(expected), side.backend.dtype(gradient))

    def _report(
        self,
        phase: str,
        key: tuple[str, ...],
        what: str,
        observed: Array,
        expected: Array,
        verdict: Verdict,
        message: str = "",
        inherited: bool = False,
    ) -> None:
        if not verdict.wrong or self.found.seen(key):
            return
        self.wrong.add(phase)
        self.found.add(
            key,
            Divergence(
                phase,
                *self.sites(),
                what,
                compare_arrays(observed, expected, picture=True)
                if observed.shape == expected.shape
                else None,
                verdict.floor,
                verdict.score,
                message,
                inherited,
                step=self.step,
            ),
        )

    def judge_gradients(self) -> None:
        """Of every parameter, as far as both sides have it."""
        ours = self.reference.gradients()
        theirs = self.port.gradients()
        inherited = "forward" in self.wrong or any(
            each.phase == "forward" and not each.inherited for each in self.found.divergences.values()
        )
        for path in self.carrier.parameters:
            expected, observed = self.carrier.carry(path, ours.get), theirs.get(path)
            if expected is None or observed is None:
                self._one_sided(path, expected, observed)
                continue
            self.add_count("gradients")
            verdict = self.noise.judge(
                ("gradient", path),
                observed,
                np.ascontiguousarray(expected),
                lambda results, path=path: self.carrier.carry(path, results.gradients.get),  # type: ignore[misc]
            )
            if verdict.wrong:
                self._report(
                    "gradient",
                    ("gradient", path),
                    phrase("gradient of {path}", path=path),
                    observed,
                    np.ascontiguousarray(expected),
                    verdict,
                    inherited=inherited,
                )

    def _one_sided(self, path: str, expected: Array | None, observed: Array | None) -> None:
        present = expected if expected is not None else observed
        if present is None or not present.any() or self.found.seen(("gradient", path)):
            return
        side = "port" if expected is not None else "reference"
        self.wrong.add("gradient")
        message = phrase("the {side} has no gradient there, the other has", side=side_name(side))
        noise = Size(0.0, 0.0)
        self.found.add(
            ("gradient", path),
            Divergence(
                "gradient",
                *self.sites(),
                phrase("gradient of {path}", path=path),
                None,
                noise,
                math.inf,
                message,
                step=self.step,
            ),
        )

    def add_count(self, what: str, by: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + by

    def sites(self) -> tuple[Site, Site]:
        return Site("", type(self.reference.model).__name__), Site("", type(self.port.model).__name__)


def _laid_out(known: Layout, reference: Array, port: Array) -> Layout | None:
    """How an output lies in a batch of any size: as in the one before, where that is possible."""
    same_move = known.for_shapes(reference.shape, port.shape)
    return same_move if same_move is not None else fit(reference, port, may_move=False)
