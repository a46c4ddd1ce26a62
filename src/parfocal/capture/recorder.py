"""The recorder: one recording's life, its steps, and the Run it leaves."""

from __future__ import annotations

import math
import shutil
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from parfocal.capture.calls import CallListener
from parfocal.capture.proof import Inertness, InertnessProof
from parfocal.capture.session import Session
from parfocal.capture.state import StateListener
from parfocal.errors import InputError
from parfocal.phrases import phrase
from parfocal.run.reader import Run, load_run
from parfocal.run.records import InterruptionRecord

PROOF = "inertness"  # the name under which a run has the outcome of check=True


class Recorder:
    """What a recording yields: marks steps, logs values, and has the ``run`` afterwards."""

    def __init__(
        self,
        session: Session,
        calls: CallListener,
        state: StateListener,
        optimizers: Sequence[Any],
        proof: InertnessProof | None = None,
    ) -> None:
        self._session = session
        self._calls = calls
        self._state = state
        self._optimizers = tuple(optimizers)
        self._proof = proof
        self._rates: dict[int, float] = {}  # of the updates in this step, by the optimizer's identity
        self._closed = False
        self._run: Run | None = None

    @property
    def path(self) -> Path:
        """The folder of the run."""
        return self._session.writer.path

    @property
    def run(self) -> Run:
        """What was recorded; there once the recording is over."""
        if not self._closed:
            raise InputError(
                phrase("the recording to {path} is not over", path=self.path),
                hint=phrase("use .run after the with block"),
            )
        if self._run is None:
            self._run = load_run(self.path)
        return self._run

    @property
    def steps_done(self) -> int:
        """How many steps are over."""
        return self._session.steps.step

    @property
    def inertness(self) -> Inertness:
        """Whether recording changed anything so far, as ``check=True`` found it."""
        if self._proof is None:
            raise InputError(phrase("nothing was checked"), hint="record(..., check=True)")
        return self._proof.inertness

    def step(self, loss: Any = None, optimizer: Any = None) -> None:
        """Mark the end of a training step, after the update.

        Not needed when ``record`` was given the optimizer. ``loss`` defaults to the sum of the
        scalars that the step's backward passes started from. ``optimizer`` tells the learning rate:
        the one its update was made with, also when a schedule has moved it on since.
        """
        if self._optimizers:
            raise InputError(
                phrase("this recording takes its steps from the optimizer it was given"),
                hint=phrase("leave out recorder.step(), or record without optimizer="),
            )
        steps = self._session.steps
        if loss is not None:
            steps.loss = self._number(loss)
        if optimizer is not None:
            used = self._rates.get(id(optimizer))
            steps.learning_rate = self._session.backend.learning_rate(optimizer) if used is None else used
        self._end_step()

    def log(self, name: str, value: Any) -> None:
        """Record any value under a name: a tensor, an array, a number, a text."""
        self._session.log(name, value)

    def finish(self) -> None:
        """The user's code is done; what came after the last mark is a step if it went backward."""
        if self._session.steps.backward >= 0:
            self._end_step()
        if self._proof is not None:
            self._session.log_leaf(PROOF, self._proof.inertness.as_texts())

    def note_interruption(self, error: BaseException) -> None:
        """The user's code was ended by an exception."""
        session = self._session
        record = InterruptionRecord(
            self._calls.path_under_way, type(error).__name__, session.steps.step, session.rank
        )
        session.writer.append(record)

    def close(self, temporary: Path | None) -> None:
        """Let go of everything, whatever happened. A temporary folder lives as long as its Run."""
        if self._calls.gradients is not None:
            self._calls.gradients.close()
        if self._proof is not None:
            self._proof.close()
        self._session.keeper.forget()
        self._closed = True
        if temporary is not None:
            weakref.finalize(self.run, shutil.rmtree, temporary, ignore_errors=True)

    def on_backward_start(self, outputs: Sequence[Any]) -> None:
        """A backward pass begins; a single number it starts from is the loss."""
        if self._proof is not None:
            if self._proof.running:
                return
            self._proof.begin_backward(self._session.model)
        self._state.begin_step()
        scalar = len(outputs) == 1 and math.prod(self._session.backend.shape(outputs[0])) == 1
        self._session.steps.begin_backward(self._number(outputs[0]) if scalar else None)

    def on_backward_end(self, finished: bool) -> None:
        """A backward pass is over; what one that raised left in the parameters is no gradient."""
        if self._proof is not None and self._proof.running:
            return
        self._session.steps.going_back = False
        if finished and self._calls.gradients is not None and self._session.wanted:
            self._state.end_backward()
        if self._proof is not None:
            self._proof.end_backward(finished)

    def before_update(self, optimizer: Any) -> None:
        """An optimizer is about to make its step."""
        self._state.begin_step()
        self._session.steps.learning_rate = self._session.backend.learning_rate(optimizer)
        self._note_gradients(optimizer)

    def note_update(self, optimizer: Any) -> None:
        """Any optimizer is about to make its step, perhaps that of another model."""
        try:
            self._rates[id(optimizer)] = self._session.backend.learning_rate(optimizer)
        except (KeyError, AttributeError, TypeError):  # a user's own, without a learning rate
            self._rates.pop(id(optimizer), None)
        self._note_gradients(optimizer)

    def _note_gradients(self, optimizer: Any) -> None:
        """What the update is made with: settings, and the gradients as they are by now."""
        self._state.record_optimizer(optimizer)
        if self._session.steps.gradient_norm is not None:
            self._session.steps.update_norm = self._state.update_norm(optimizer)

    def after_update(self) -> None:
        """An optimizer made its step, which ends the recording's step too."""
        self._end_step()

    def _end_step(self) -> None:
        steps, gradients = self._session.steps, self._calls.gradients
        if gradients is not None:
            if steps.backward >= 0:
                gradients.report_absent()
            gradients.end_step()
        self._calls.end_step()
        self._rates.clear()
        self._state.end_step()
        self._session.writer.append(steps.finish(self._session.rank))

    def _number(self, value: Any) -> float:
        backend = self._session.backend
        if backend.is_tensor(value):
            value = backend.to_array(value).reshape(-1)[0]
        return float(value)
