"""Recording one call of a model into its report, through the backend's watch.

With ``follow`` the inputs of every call are replaced by those of the corresponding call of
another report, and the gradients of its outputs too, so that each call shows its own error only;
``isolate`` gives every call its own copy of its inputs, so that the gradients recorded there are
that call's alone and two such reports can be compared.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import parfocal
from parfocal.backends.protocol import Backend, Call, OpCall
from parfocal.capture.nested_values import flatten, flatten_call, replace_call
from parfocal.compat.padiff.abstracts.marker import Marker
from parfocal.compat.padiff.abstracts.tree import ModuleNode
from parfocal.compat.padiff.report.following import BaseFollower
from parfocal.compat.padiff.report.report import Frame, KeptTensor, Report, ReportNode
from parfocal.compat.padiff.report.thirdparty import watch_functions
from parfocal.compat.padiff.utils import log

_OWN_FILES = os.path.dirname(os.path.abspath(parfocal.__file__)) + os.sep


@contextmanager
def record_call(
    backend: Backend,
    model: Any,
    marker: Marker,
    report: Report,
    *,
    isolate: bool = False,
    follower: BaseFollower | None = None,
) -> Iterator[None]:
    """Record every call of the model's modules until the context is left."""
    recorder = _Recorder(backend, marker, report, isolate, follower)
    try:
        with ExitStack() as watches:
            on_op = None
            if os.environ.get("PADIFF_API_CHECK") == "ON":
                on_op = recorder.on_op
                watches.enter_context(watch_functions(recorder.on_function))
            watches.enter_context(backend.watch(model, recorder.on_enter, recorder.on_exit, on_op))
            yield
    finally:
        recorder.abandon()


class _Recorder:
    """The callbacks of one watch, and the calls that are under way."""

    def __init__(
        self, backend: Backend, marker: Marker, report: Report, isolate: bool, follower: BaseFollower | None
    ) -> None:
        self.backend = backend
        self.report = report
        self.isolate = isolate or follower is not None
        self.follower = follower
        self.wanted: dict[str, ModuleNode] = {
            node.path: node for node in marker.tree().walk() if marker.recorded(node)
        }
        self.mapped = {id(entry.module) for entry in marker.layer_map}
        self.open: list[ReportNode] = []
        self.known_roots = len(report.roots)
        self.known_calls = len(report.finished)

    def on_enter(self, call: Call) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        module_node = self.wanted.get(call.path)
        if module_node is None:
            return None
        node = self._begin(module_node, call)
        call.note["padiff"] = node
        inputs = self._tensors(flatten_call(call.args, call.kwargs).leaves)
        if not self.isolate:
            self._watch_inputs(node, inputs)
            return None
        replaced = self._replace_inputs(node, inputs)
        call.note["copies"] = [(tensor, self.backend.version(tensor)) for tensor in replaced.values()]
        self._watch_inputs(node, {**inputs, **replaced})
        return replace_call(call.args, call.kwargs, replaced)

    def on_exit(self, call: Call, output: Any) -> None:
        node = call.note.get("padiff")
        if node is None:
            return
        del self.open[self.open.index(node) :]
        # A call inside that raised, and whose error was caught, has no end and no outputs.
        node.children = [child for child in node.children if child.step >= 0]
        outputs = self._tensors(flatten(output).leaves)
        self._fill(node, outputs)
        self._tell_in_place(node, call.note.get("copies", ()), outputs)

    def on_op(self, operation: OpCall) -> None:
        caller = next((node for node in reversed(self.open) if node.order == operation.call), None)
        if caller is not None:
            name = f"{self.backend.name}.{operation.name}"
            self._add_function(
                caller, name, operation.name, operation.args, operation.kwargs, operation.output
            )

    def on_function(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        """A custom operator that a variable names."""
        if self.open:
            self._add_function(self.open[-1], name, name.rpartition(".")[2], args, kwargs, output)

    def _add_function(
        self,
        caller: ReportNode,
        name: str,
        kind: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        output: Any,
    ) -> None:
        outputs = self._tensors(flatten(output).leaves)
        if not outputs or caller.builtin:
            return
        node = ReportNode(name, caller.path, kind, "api", -1, False, False, stack_frames())
        caller.children.append(node)
        produced = {id(tensor) for tensor in outputs.values()}
        inputs = self._tensors(flatten_call(args, kwargs).leaves)
        self._watch_inputs(node, {s: tensor for s, tensor in inputs.items() if id(tensor) not in produced})
        self._fill(node, outputs)

    def abandon(self) -> None:
        """Forget calls that never ended, because the model raised."""
        if self.open:
            del self.report.roots[self.known_roots :]
            del self.report.finished[self.known_calls :]
            self.open.clear()

    def _begin(self, module_node: ModuleNode, call: Call) -> ReportNode:
        while self.open and self.open[-1].depth >= call.depth:
            self.open.pop()  # it raised, and the error was caught
        module = module_node.module
        node = ReportNode(
            name=module_node.class_name,
            path=module_node.path,
            kind=self.backend.kind(module),
            layer_type="in map" if id(module) in self.mapped else "net",
            net_id=module_node.index,
            builtin=self.backend.is_framework_layer(module),
            training=bool(module.training),
            frames=stack_frames(),
            module_class=type(module),
            order=call.order,
            depth=call.depth,
        )
        (self.open[-1].children if self.open else self.report.roots).append(node)
        self.open.append(node)
        return node

    def _fill(self, node: ReportNode, outputs: Mapping[str, Any]) -> None:
        node.outputs = [KeptTensor.of(self.backend, tensor) for tensor in outputs.values()]
        self.report.finish(node)
        if self.isolate and node.layer_type != "api":
            self._watch_outputs(node, outputs)

    def _tell_in_place(self, node: ReportNode, copies: Any, outputs: Mapping[str, Any]) -> None:
        """A copy that was changed and is not handed out: whoever made the call will not see the change."""
        handed_out = {id(tensor) for tensor in outputs.values()}
        for tensor, version in copies:
            if self.backend.version(tensor) != version and id(tensor) not in handed_out:
                name = node.path or node.name
                log(f"WARNING: {name} changes its input in place; single_step gives it a copy.")

    def _tensors(self, leaves: Mapping[str, Any]) -> dict[str, Any]:
        return {slot: leaf for slot, leaf in leaves.items() if self.backend.is_tensor(leaf)}

    def _replace_inputs(self, node: ReportNode, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Every floating input as a tensor of this call alone, with the followed call's values if any."""
        floating = {slot: tensor for slot, tensor in inputs.items() if _is_float(self.backend.dtype(tensor))}
        node.inputs = {slot: KeptTensor.of(self.backend, tensor) for slot, tensor in floating.items()}
        given = self.follower.inputs(node) if self.follower else {}
        return {
            slot: self.backend.substitute(tensor, given.get(slot, node.inputs[slot].array))
            for slot, tensor in floating.items()
        }

    def _watch_inputs(self, node: ReportNode, inputs: Mapping[str, Any]) -> None:
        node.elements = _elements(self.backend, inputs)
        for slot, tensor in inputs.items():
            if self.backend.requires_grad(tensor):
                node.input_gradients[slot] = None
                self._watch(tensor, node.input_gradients, slot)

    def _watch_outputs(self, node: ReportNode, outputs: Mapping[str, Any]) -> None:
        given = self.follower.output_gradients(node) if self.follower else {}
        for position, tensor in enumerate(outputs.values()):
            if self.backend.requires_grad(tensor):
                slot = str(position)
                node.output_gradients[slot] = None
                self._watch(tensor, node.output_gradients, slot, given.get(slot))

    def _watch(
        self, tensor: Any, store: dict[str, KeptTensor | None], slot: str, replacement: Any = None
    ) -> None:
        backend = self.backend

        def arrived(gradient: Any) -> Any:
            kept = store[slot] = KeptTensor.of(backend, gradient)
            if replacement is None or replacement.shape != kept.array.shape:
                return None
            return backend.substitute(gradient, replacement.astype(kept.array.dtype))

        self.report.keep_hook(backend.watch_gradient(tensor, arrived))


def stack_frames() -> tuple[Frame, ...]:
    """The frames of the current call, innermost first, without parfocal's own."""
    frames: list[Frame] = []
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_OWN_FILES):
            frames.append((code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(frames)


def _is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat", "complex"))


def _elements(backend: Backend, inputs: Mapping[str, Any]) -> int:
    return next((math.prod(backend.shape(tensor)) for tensor in inputs.values()), 0)
