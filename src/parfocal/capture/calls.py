"""Module and op calls as they happen, with the gradients that arrive at their tensors.

Inputs are kept when a call begins, before anything can change them; outputs when it
returns, and then the call is a finished record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from parfocal.backends.protocol import Call, OpCall
from parfocal.capture.follow import Follower
from parfocal.capture.gradients import Exchange, GradientWatch, Target
from parfocal.capture.session import Session, plain_settings
from parfocal.capture.sites import Sites
from parfocal.capture.tree import Flat, flatten, flatten_call, replace, replace_call
from parfocal.run.records import CallRecord, GradientRecord, Structure

_NOTE = "record"
FOLLOWED = "follow."  # a logged value of this name and a call's order is the order of its counterpart


@dataclass(frozen=True, slots=True)
class _Begun:
    """What is known of a call when it begins."""

    parent: int | None
    occurrence: int
    kind: str
    file: str | None
    line: int | None
    training: bool
    inputs: Structure


class CallListener:
    """The callbacks of a watch."""

    def __init__(self, session: Session, *, grads: bool, follower: Follower | None = None) -> None:
        self._session = session
        self._follower = follower
        self._sites = Sites((session.backend.name,))
        self.gradients = GradientWatch(session.backend, self._on_gradient) if grads else None
        self._kinds: dict[int, str] = {}
        # A call under way -> itself, or the nearest call around it that is recorded.
        self._recorded: dict[int | None, int | None] = {None: None}

    def on_enter(self, call: Call) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        session = self._session
        if not session.wanted:
            return None
        kind = self._kind(call.module)
        occurrence = session.steps.occurrence(call.path)
        parent = self._recorded.get(call.parent)
        if not session.chosen.wants_call(call.path, kind):
            self._recorded[call.order] = parent
            return None
        self._recorded[call.order] = call.order
        inputs = flatten_call(call.args, call.kwargs)
        file, line = self._sites.find()
        call.note[_NOTE] = _Begun(
            parent=parent,
            occurrence=occurrence,
            kind=kind,
            file=file,
            line=line,
            training=bool(call.module.training),
            inputs=session.keeper.structure(inputs),
        )
        if self._follower is not None:
            return self._feed(self._follower, call, kind, inputs)
        self._await_gradients(call.order, "input", inputs)
        return None

    def on_exit(self, call: Call, output: Any) -> Any:
        self._recorded.pop(call.order, None)
        begun: _Begun | None = call.note.pop(_NOTE, None)
        if begun is None:
            return None
        session = self._session
        outputs = flatten(output)
        record = CallRecord(
            order=call.order,
            parent=begun.parent,
            depth=call.depth,
            path=call.path,
            kind=begun.kind,
            class_name=type(call.module).__qualname__,
            op=None,
            occurrence=begun.occurrence,
            file=begun.file,
            line=begun.line,
            training=begun.training,
            settings=plain_settings(session.backend.settings(call.module)),
            inputs=begun.inputs,
            outputs=session.keeper.structure(outputs),
            step=session.steps.step,
            rank=session.rank,
        )
        session.writer.append(record)
        exchanges: dict[str, Exchange] = {}
        if self._follower is not None:
            fed, exchanges = self._follower.end(call, outputs)
            output = replace(output, fed)
            outputs = flatten(output)
        self._await_gradients(call.order, "output", outputs, exchanges)
        return output if self._follower is not None else None

    def on_op(self, op: OpCall) -> None:
        """An op returned. What it was given is kept as it is now, so an op in place shows its result."""
        session = self._session
        if not (session.wanted and session.chosen.wants_path(op.module)):
            return
        file, line = self._sites.find()
        inputs, outputs = flatten_call(op.args, op.kwargs), flatten(op.output)
        record = CallRecord(
            order=op.order,
            parent=self._recorded.get(op.call),
            depth=0,
            path=op.module,
            kind=op.name,
            class_name=op.native,
            op=op.name,
            occurrence=session.steps.occurrence(op.module, op.name),
            file=file,
            line=line,
            training=False,
            settings={},
            inputs=session.keeper.structure(inputs),
            outputs=session.keeper.structure(outputs),
            step=session.steps.step,
            rank=session.rank,
        )
        session.writer.append(record)
        self._await_gradients(op.order, "output", outputs)

    def _feed(
        self, follower: Follower, call: Call, kind: str, inputs: Flat
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Exchange a call's inputs for those of the run that is followed."""
        session = self._session
        other, fed = follower.begin(call, kind, inputs, session.steps.step)
        if other is not None:
            session.log(f"{FOLLOWED}{call.order}", other)
        kept = Flat({slot: leaf for slot, leaf in inputs.leaves.items() if slot not in fed}, inputs.shape)
        self._await_gradients(call.order, "input", kept)
        if self.gradients is not None:
            for slot, new in fed.items():
                target = Target(call.order, "input", slot, session.steps.step)
                self.gradients.await_own(inputs.leaves[slot], new, target)
        return replace_call(call.args, call.kwargs, fed) if fed else None

    def _kind(self, module: Any) -> str:
        kind = self._kinds.get(id(module))
        if kind is None:
            kind = self._kinds[id(module)] = self._session.backend.kind(module)
        return kind

    def _await_gradients(
        self, order: int, side: str, flat: Flat, exchanges: Mapping[str, Exchange] = MappingProxyType({})
    ) -> None:
        if self.gradients is None:
            return
        for slot, leaf in flat.leaves.items():
            if self._session.backend.is_tensor(leaf):
                target = Target(order, side, slot, self._session.steps.step)
                self.gradients.await_gradient(leaf, target, exchanges.get(slot))

    def _on_gradient(self, target: Target, gradient: Any) -> None:
        session = self._session
        value = None
        if gradient is not None:
            name = f"{target.side} gradient {target.slot} of call {target.call}"
            value = session.tensor_value(gradient, name)
            if value is None:  # it came, but cannot be stored; saying that none came would be wrong
                return
        session.writer.append(
            GradientRecord(
                call=target.call,
                side=target.side,
                slot=target.slot,
                backward=max(0, session.steps.backward),
                value=value,
                step=target.step,
                rank=session.rank,
            )
        )
