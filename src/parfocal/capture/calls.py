"""Module and op calls as they happen, with the gradients that arrive at their tensors.

Inputs are kept when a call begins, before anything can change them; outputs when it
returns, and then the call is a finished record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from types import MappingProxyType
from typing import Any

from parfocal.backends.protocol import Call, OpCall
from parfocal.capture.floors import FloorPass
from parfocal.capture.follow import RunFollower
from parfocal.capture.gradients import Exchange, GradientTarget, GradientWatch
from parfocal.capture.nested_values import FlatValue, flatten, flatten_call, replace, replace_call
from parfocal.capture.proof import InertnessProof
from parfocal.capture.session import Session, module_settings
from parfocal.capture.sites import Sites
from parfocal.capture.state import StateListener
from parfocal.run.records import CallRecord, GradientRecord, Structure, TensorValue

_NOTE = "record"
_AGAIN = "record again"
FOLLOWED = "follow."  # a logged value of this name and a call's order is the order of its counterpart


@dataclass(frozen=True, slots=True)
class _Around:
    """What the calls and ops inside a call need to know of it; ``order`` of the nearest recorded one."""

    order: int | None = None
    depth: int = -1
    training: bool = False
    path: str = ""


@dataclass(frozen=True, slots=True)
class _Begun:
    """What is known of a call when it begins."""

    order: int
    parent: int | None
    occurrence: int
    kind: str
    file: str | None
    line: int | None
    training: bool
    inputs: Structure


_OUTSIDE = _Around()


class CallListener:
    """The callbacks of a watch."""

    def __init__(
        self,
        session: Session,
        state: StateListener,
        *,
        grads: bool,
        follower: RunFollower | None = None,
        proof: InertnessProof | None = None,
    ) -> None:
        self._session = session
        self._state = state
        self._follower = follower
        self._proof = proof
        self._floors = None if follower is None else FloorPass(session, follower)
        self._sites = Sites((session.backend.name,))
        self.gradients = GradientWatch(session.backend, self._on_gradient) if grads else None
        self._kinds: dict[int, str] = {}
        # Records are numbered here: the watch counts calls and ops apart, and those not wanted too.
        self._orders = count()
        self._under_way: dict[int | None, _Around] = {}
        self._outside_graph: dict[str, list[int]] = {}  # path -> calls of this step that no graph knows

    def on_enter(self, call: Call) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        if self._floors is not None and self._floors.running:
            return self._floors.enter(call)
        session = self._session
        self._state.begin_step()
        if not session.wanted:
            return None
        if session.steps.going_back:
            self._begin_again(call)
            return None
        if self._proof is not None and call.depth == 0:
            self._proof.begin(call)
        kind = self._kind(call.module)
        occurrence = session.steps.occurrence(call.path)
        parent = self._under_way.get(call.parent, _OUTSIDE).order
        training = bool(call.module.training)
        if not session.chosen.wants_call(call.path, kind):
            self._under_way[call.order] = _Around(parent, call.depth, training, call.path)
            if self._floors is not None:
                self._floors.skip(call)
            return None
        order = next(self._orders)
        self._under_way[call.order] = _Around(order, call.depth, training, call.path)
        inputs = flatten_call(call.args, call.kwargs)
        file, line = self._sites.find()
        kept = session.keeper.structure(inputs)
        call.note[_NOTE] = _Begun(order, parent, occurrence, kind, file, line, training, kept)
        if self._follower is not None:
            return self._feed(self._follower, call, order, inputs, kind)
        self._await_gradients(order, "input", inputs)
        return None

    def on_exit(self, call: Call, output: Any) -> Any:
        if self._floors is not None and self._floors.running:
            return self._floors.leave(call, output)
        replaced = self._end(call, output)
        if self._proof is not None:
            self._proof.end(call, output, self._session.steps.step)
        return replaced

    def _end(self, call: Call, output: Any) -> Any:
        self._under_way.pop(call.order, None)
        begun: _Begun | None = call.note.pop(_NOTE, None)
        if begun is None:
            self._end_again(call, output)
            return None
        session = self._session
        outputs = flatten(output)
        record = CallRecord(
            order=begun.order,
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
            settings=module_settings(session.backend, call.module),
            inputs=begun.inputs,
            outputs=session.keeper.structure(outputs),
            step=session.steps.step,
            rank=session.rank,
        )
        session.writer.append(record)
        exchanges: dict[str, Exchange] = {}
        if self._follower is not None and self._floors is not None:
            self._floors.note_end(call, outputs)
            fed, exchanges = self._follower.end(call, outputs)
            output = replace(output, fed)
            outputs = flatten(output)
        if not self._await_gradients(begun.order, "output", outputs, exchanges):
            self._outside_graph.setdefault(call.path, []).append(begun.order)
        return output if self._follower is not None else None

    def on_op(self, op: OpCall) -> None:
        session = self._session
        if self._floors is not None and self._floors.running:
            return
        if not (session.wanted and session.chosen.wants_call(op.module, op.name)):
            return
        inputs, outputs = flatten_call(op.args, op.kwargs), flatten(op.output)
        if not any(map(session.backend.is_tensor, outputs.leaves.values())):
            return  # a hook on a gradient
        around = self._under_way.get(op.call, _OUTSIDE)
        order = next(self._orders)
        file, line = self._sites.find()
        record = CallRecord(
            order=order,
            parent=around.order,
            depth=around.depth + 1,
            path=op.module,
            kind=op.name,
            class_name=op.native,
            op=op.name,
            occurrence=session.steps.occurrence(op.module, op.name),
            file=file,
            line=line,
            training=around.training,
            settings={},
            inputs=session.keeper.structure(inputs),
            outputs=session.keeper.structure(outputs),
            step=session.steps.step,
            rank=session.rank,
        )
        session.writer.append(record)
        self._await_gradients(order, "output", outputs)

    @property
    def path_under_way(self) -> str | None:
        """Of the innermost call that has begun and not returned."""
        innermost = max(self._under_way.values(), key=lambda around: around.depth, default=None)
        return None if innermost is None else innermost.path

    def end_step(self) -> None:
        """Nothing is under way between two steps; what is left was ended by an exception."""
        self._under_way.clear()
        self._outside_graph.clear()

    def _begin_again(self, call: Call) -> None:
        """A call inside a backward pass repeats one of the forward pass, to save memory.

        It is no new call. If the first one was made outside any graph, the gradients that are
        due to it arrive here.
        """
        orders = self._outside_graph.get(call.path, [])
        if len(orders) == 1:
            call.note[_AGAIN] = orders[0]
            self._await_gradients(orders[0], "input", flatten_call(call.args, call.kwargs))

    def _end_again(self, call: Call, output: Any) -> None:
        if _AGAIN in call.note:
            self._await_gradients(call.note[_AGAIN], "output", flatten(output))

    def _feed(
        self, follower: RunFollower, call: Call, order: int, inputs: FlatValue, kind: str
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Exchange a call's inputs for those of the run that is followed."""
        session = self._session
        other, fed = follower.begin(call, kind, inputs, session.steps.step)
        if other is not None:
            session.log(f"{FOLLOWED}{order}", other.order)
        assert self._floors is not None
        self._floors.note_begin(call, order, inputs, other)
        kept = FlatValue(
            {slot: leaf for slot, leaf in inputs.leaves.items() if slot not in fed}, inputs.shape
        )
        self._await_gradients(order, "input", kept)
        if self.gradients is not None:
            for slot, new in fed.items():
                target = GradientTarget(order, "input", slot, session.steps.step)
                self.gradients.await_own(inputs.leaves[slot], new, target)
        return replace_call(call.args, call.kwargs, fed) if fed else None

    def _kind(self, module: Any) -> str:
        kind = self._kinds.get(id(module))
        if kind is None:
            kind = self._kinds[id(module)] = self._session.backend.kind(module)
        return kind

    def _await_gradients(
        self, order: int, side: str, flat: FlatValue, exchanges: Mapping[str, Exchange] = MappingProxyType({})
    ) -> bool:
        """Await the gradients of a call's tensors; False when there are none to come."""
        if self.gradients is None:
            return False
        awaited = False
        for slot, leaf in flat.leaves.items():
            if self._session.backend.is_tensor(leaf):
                target = GradientTarget(order, side, slot, self._session.steps.step)
                awaited |= self.gradients.await_gradient(leaf, target, exchanges.get(slot))
        return awaited

    def _on_gradient(self, targets: Sequence[GradientTarget], gradient: Any, hidden: bool) -> None:
        session = self._session
        value = None if gradient is None else session.keeper.leaf(gradient)
        if value is not None and not isinstance(value, TensorValue):
            # it came, but cannot be stored; saying that none came would be wrong
            for target in targets:
                name = f"{target.side} gradient {target.slot} of call {target.call}"
                session.log_leaf(name, value)
            return
        session.writer.append(
            *(
                GradientRecord(
                    call=target.call,
                    side=target.side,
                    slot=target.slot,
                    backward=max(0, session.steps.backward),
                    value=value,
                    step=target.step,
                    rank=session.rank,
                    hidden=hidden,
                )
                for target in targets
            )
        )
