"""Fills a log while a call is repeated: its own ops, the modules it calls, what its helpers return."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from cProfile import Profile
from dataclasses import dataclass
from functools import partial
from itertools import islice
from types import FrameType
from typing import Any

from parfocal.backends.opcalls import works_in_place
from parfocal.backends.protocol import Array, Backend, Call, OpCall
from parfocal.capture.nested_values import flatten, flatten_call
from parfocal.capture.sites import Site, Sites
from parfocal.errors import UnsupportedError
from parfocal.explain.case import Case
from parfocal.explain.fixes.frames import LONGEST, Common, span_of, standing, users_frames
from parfocal.explain.fixes.literals import written
from parfocal.explain.kept import KEPT, is_kept
from parfocal.explain.ops.log import Key, Maker, Op, OpLog, Return, key_of
from parfocal.explain.ops.names import name_of_kind
from parfocal.judge import limits
from parfocal.phrases import phrase
from parfocal.replay.trace import Node

LARGEST = limits.searches.WATCHED_BYTES.value
MOST_FRAMES = limits.searches.WATCHED_FRAMES.value


@dataclass(frozen=True, slots=True)
class InvestigatedCode:
    """Which calls of a repetition are the code under investigation.

    Modules inside that have no partner are part of the code around them, unless they are the
    framework's own and have nothing inside to look at.
    """

    nodes: list[Node]
    start: int  # the call that is repeated
    call: int  # the call whose code it is
    paired: frozenset[int]
    opened: frozenset[int]  # the call, and those around it that make what it is given

    def order(self, offset: int) -> int:
        return self.start + offset

    def owner(self, order: int | None) -> int | None:
        """The call whose code does what is done there, if that is of interest."""
        while order is not None and order not in self.opened:
            if order in self.paired:
                return None
            order = self.nodes[order].parent
        return order

    def shows(self, order: int) -> bool:
        """Whether a call is seen as one step of that code."""
        node = self.nodes[order]
        if order in self.opened or self.owner(node.parent) is None:
            return False
        return order in self.paired or (node.framework_layer and not node.children)

    def elsewhere(self, order: int | None) -> tuple[str | None, str | None]:
        """Path and kind of the module whose code does what is done in a call, if not the call's own.

        It need not have a partner. What is done inside of a framework's layer is done by the user's code
        that calls it.
        """
        owner = self.owner(order)
        while order is not None and order != owner and self.nodes[order].framework_layer:
            order = self.nodes[order].parent
        if owner is None or order is None or order == self.call:
            return None, None
        return self.nodes[order].path, self.nodes[order].kind


class Watcher:
    """Give it to a repeated call as ``on_op`` and as its listener."""

    def __init__(self, backend: Backend, part: InvestigatedCode, *, kept: bool = False) -> None:
        """``kept``: whether what the call leaves in its buffers is one of its results."""
        self.log = OpLog()
        self._kept = kept
        self._backend = backend
        self._part = part
        self._sites = Sites((backend.name,))
        self._bytes = 0
        self._waiting: dict[int, tuple[dict[str, Key], dict[str, Maker], Site]] = {}
        self._calls: list[int] = []  # under way
        self._makers: dict[int, tuple[Any, Maker]] = {}  # by identity, each tensor kept alive
        self._common: Common = {}
        self._sees_returns = False

    def __call__(self, op: OpCall) -> None:
        with self._looking_away():
            self._note(op)

    def _note(self, op: OpCall) -> None:
        order = None if op.call is None else self._part.order(op.call)
        if op.function is None or self._part.owner(order) is None:
            return
        file, line = self._sites.find()
        taken, given = flatten_call(op.args, op.kwargs).leaves, flatten(op.output).leaves
        entry = Op(
            len(self.log.ops),
            op.name,
            op.args,
            op.kwargs,
            inputs=dict(self._keys(taken)),
            outputs=dict(self._keys(given)),
            file=file,
            line=line,
            order=op.order,
            native=op.native,
            function=op.function,
            owner=self._part.elsewhere(order),
            makers=self._made(taken),
            **self._seen_in_source(),
        )
        view = self._makers.get(id(op.output)) if works_in_place(op.native, op.kwargs) else None
        self._remember(entry, given)
        if view is not None:
            self._written_through(entry, op.output, self.log.ops[view[1][0]])

    def _written_through(self, writing: Op, part: Any, view: Op) -> None:
        """An op in place changed a part of another tensor: that is written, as by an index."""
        whole = view.args[0] if view.native.endswith("__getitem__") else None
        if not self._backend.is_tensor(whole) or "0" not in view.inputs:
            return
        before, after = view.inputs["0"], self._keep(self._backend.to_array(whole))
        made = self._makers.get(id(whole))
        if made is not None:
            before = self.log.ops[made[1][0]].outputs[made[1][1]]
        if after == before:
            return
        entry = Op(
            len(self.log.ops),
            "setitem",
            (whole, *view.args[1:], part),
            {},
            inputs={"0": before, "value": writing.outputs["0"]},
            outputs={"0": after},
            file=writing.file,
            line=writing.line,
            makers={"value": (writing.index, "0"), **({} if made is None else {"0": made[1]})},
            span=writing.span,
            around=writing.around,
        )
        self._remember(entry, {"0": whole})

    def _seen_in_source(self) -> dict[str, Any]:
        """Where the user's code stands, and the tensors it has names for."""
        frames = list(islice(users_frames(self._sites.is_users), MOST_FRAMES))
        if not frames:
            return {}
        inner, *_ = stand = tuple(standing(frame, self._common) for frame in frames)
        return {"span": inner.span, "around": self._tensors(frames[0]), "frames": stand}

    def _tensors(self, frame: FrameType) -> dict[str, Any]:
        """The tensors of a frame by the expressions for them: names first, then items of named lists."""
        is_tensor, names = self._backend.is_tensor, frame.f_locals
        found = {name: value for name, value in names.items() if is_tensor(value)}
        for name, value in names.items():
            if isinstance(value, (list, tuple)) and len(value) <= LONGEST:
                found |= {f"{name}[{i}]": item for i, item in enumerate(value) if is_tensor(item)}
            elif isinstance(value, dict) and len(value) <= LONGEST:
                items = ((key, item) for key, item in value.items() if isinstance(key, str))
                found |= {f"{name}[{written(key)}]": item for key, item in items if is_tensor(item)}
        return found

    def entered(self, call: Call) -> None:
        with self._looking_away():
            self._enter(call)

    def left(self, call: Call, computed: Any, given: Any) -> None:
        with self._looking_away():
            self._leave(call, computed, given)

    def _enter(self, call: Call) -> None:
        order = self._part.order(call.order)
        self._calls.append(order)
        if order == self._part.call or self._part.shows(order):
            leaves = flatten_call(call.args, call.kwargs).leaves
            self._waiting[order] = dict(self._keys(leaves)), self._made(leaves), self._sites.find()

    def _leave(self, call: Call, computed: Any, given: Any) -> None:
        order = self._part.order(call.order)
        while self._calls and self._calls.pop() != order:
            pass
        if order not in self._waiting:
            return
        inputs, makers, (file, line) = self._waiting.pop(order)
        if order == self._part.call:
            state = self._backend.state(call.module) if self._kept else []
            kept = {f"{KEPT}{entry.path}": entry.value for entry in state if entry.role == "buffer"}
            leaves = flatten(computed).leaves | kept
            self.log.results = dict(self._keys(leaves))
            self.log.result_makers = self._made(leaves)
            self.log.ended = len(self.log.ops)
            return
        node = self._part.nodes[order]
        leaves = flatten(given).leaves
        name = name_of_kind(node.kind) if node.framework_layer else node.kind
        entry = Op(
            len(self.log.ops),
            name,
            (),
            {},
            inputs,
            dict(self._keys(leaves)),
            file,
            line,
            path=node.path,
            call=order,
            bound=dict(node.settings),
            owner=self._part.elsewhere(node.parent),
            makers=makers,
            **self._seen_in_source(),
        )
        self._remember(entry, leaves)

    def _remember(self, op: Op, leaves: dict[str, Any]) -> None:
        self.log.add(op)
        for slot in op.outputs:
            self._makers[id(leaves[slot])] = leaves[slot], (op.index, slot)

    def _made(self, leaves: dict[str, Any]) -> dict[str, Maker]:
        known = ((slot, self._makers.get(id(leaf))) for slot, leaf in leaves.items())
        return {slot: found[1] for slot, found in known if found is not None}

    @contextmanager
    def seeing_returns(self) -> Iterator[None]:
        """Records what functions of the user's code return, for a while."""
        before = sys.getprofile()
        sys.setprofile(None)
        self._sees_returns = True
        try:
            yield
        finally:
            self._sees_returns = False
            sys.setprofile(before if callable(before) else None)
            if isinstance(before, Profile):  # it is no function: it has its own way to be switched on
                before.enable()

    @contextmanager
    def _looking_away(self) -> Iterator[None]:
        """Switches the profiler off in the watcher's own code, which would be most of what it sees."""
        if self._sees_returns:
            sys.setprofile(None)
        try:
            yield
        finally:
            if self._sees_returns and self._calls and self._part.owner(self._calls[-1]) is not None:
                sys.setprofile(self._profile)

    def _profile(self, frame: FrameType, event: str, given: Any) -> None:
        if event != "return" or given is None or not self._calls:
            return
        caller = frame.f_back
        name = frame.f_code.co_filename
        # what the framework calls is a module, and no helper of one
        if caller is None or not (
            self._sites.is_users(name) and self._sites.is_users(caller.f_code.co_filename)
        ):
            return
        if self._part.owner(self._calls[-1]) is None:
            return
        code, moment = frame.f_code, len(self.log.ops)
        for tensor in given if isinstance(given, (list, tuple)) else (given,):
            if self._backend.is_tensor(tensor):
                arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
                through = any(frame.f_locals.get(argument) is tensor for argument in arguments)
                called = caller.f_code.co_filename, span_of(caller)
                self.log.returns.append(
                    Return(
                        moment,
                        tensor,
                        name,
                        frame.f_lineno,
                        through,
                        self._tensors(frame),
                        called,
                        self._tensors(caller),
                        given is tensor,
                    )
                )

    def _keys(self, leaves: dict[str, Any]) -> Iterator[tuple[str, Key]]:
        for slot, leaf in leaves.items():
            if self._backend.is_tensor(leaf):
                yield slot, self._keep(self._backend.to_array(leaf))

    def _keep(self, array: Array) -> Key:
        key = key_of(array)
        if key not in self.log.values:
            self._bytes += array.nbytes
            if self._bytes > LARGEST:
                raise UnsupportedError(
                    phrase("the ops of one call give more than {largest} MiB", largest=LARGEST >> 20)
                )
            self.log.values[key] = array
        return key


def watched(case: Case, *, own: bool) -> OpLog | None:
    """The ops of the port's call, or of the reference's; None when it cannot be repeated."""
    repeater = case.precise.port if own else case.precise.reference
    call = case.call if own else case.counterpart
    assert call is not None
    opened = case.opened if own else case.reference_opened
    start = case.start if own else min(opened)
    kept = any(map(is_kept, case.looked_at))
    watcher = Watcher(
        repeater.backend,
        InvestigatedCode(repeater.trace.nodes, start, call, case.steps(own=own), opened),
        kept=kept,
    )
    run = case.run if own else partial(case.run_reference, start=start)
    with watcher.seeing_returns():
        repeated = run(on_op=watcher, listener=watcher, forward_only=True)
    if own and repeated is not None and case.direction == "forward":
        case.seen_as_it_is(repeated)
    return None if repeated is None else watcher.log
