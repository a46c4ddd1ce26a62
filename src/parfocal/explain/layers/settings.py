"""Reading and testing at once: settings in which two layers differ, each tried in the port.

The port's layer is built anew with the reference's setting and the port's own weights, or the
reference's where the port's have another shape, by the line of code that is then recommended. A
layer of another kind altogether is tried the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from parfocal.backends.building import LayerBuilder
from parfocal.backends.protocol import Backend
from parfocal.backends.vocabulary import ACTIVATIONS, family
from parfocal.errors import UnsupportedError
from parfocal.explain.case import Case
from parfocal.explain.causes import PortLine, ProvenChange, code_of, place, said, spelled_path, two_values
from parfocal.phrases import joined, phrase
from parfocal.replay.trace import Node
from parfocal.weights.settings import differing_names
from parfocal.weights.transfer import transfer

MODES = {True: "train", False: "eval"}


def differing_settings(case: Case) -> Iterator[ProvenChange]:
    """Every setting in which the two differ, alone; all of them together if none alone is enough."""
    other = case.reference_node
    if other is None or family(other.kind) != family(case.node.kind) or not _can_build(case):
        return
    ours = other.settings
    names = differing_names(ours, case.node.settings)
    found = [proof for name in names if (proof := _tried(case, {name: ours[name]})) is not None]
    if not found and len(names) > 1:
        together = _tried(case, {name: ours[name] for name in names})
        found = [] if together is None else [together]
    yield from found


def differences(ours: tuple[Backend, Any], theirs: tuple[Backend, Any]) -> list[str]:
    """What two layers of the same kind say differently of themselves, in words."""
    kinds = [backend.kind(module) for backend, module in (ours, theirs)]
    if None in kinds or family(str(kinds[0])) != family(str(kinds[1])):
        return []
    mine, yours = (backend.settings(module) for backend, module in (ours, theirs))
    return [two_values(name, mine[name], yours[name]) for name in differing_names(mine, yours)]


def another_kind(case: Case) -> Iterator[ProvenChange]:
    """The port has a framework's layer of another kind."""
    if case.node.framework_layer:
        yield from _exchanged(case)


def another_activation(case: Case) -> Iterator[ProvenChange]:
    """The port has a hand-written layer where the reference has an activation with a name.

    That a library's layer would do better than any other hand-written one is no cause.
    """
    other = case.reference_node
    if other is not None and other.kind in ACTIVATIONS and not case.node.framework_layer:
        yield from _exchanged(case)


def _exchanged(case: Case) -> Iterator[ProvenChange]:
    """The reference's kind of layer in the place of the port's."""
    other, builder = case.reference_node, case.backend
    if other is None or not isinstance(builder, LayerBuilder) or not case.node.is_leaf:
        return
    if family(other.kind) == family(case.node.kind):
        return

    def made(twin: Any) -> Any:
        return exchanged(case.backend, other, case.reference_module, twin)

    measured = case.tried(made)
    if measured > case.limit:
        return
    activates = case.node.kind in ACTIVATIONS or not case.node.framework_layer
    code = "op.activation" if activates and other.kind in ACTIVATIONS else "op.kind"
    line = builder.spell(other.kind, other.settings)
    message = phrase(
        "{place} is {reference} in the reference, {port} in the port",
        place=place(case.node),
        reference=other.kind,
        port=case.node.kind,
    )
    fix = PortLine.layer(case.node.path, line)
    yield ProvenChange(code, message, fix, measured, facts=(other.kind, case.node.kind, line))


def exchanged(backend: Backend, other: Node, source: Any, module: Any) -> Any:
    """A layer of the reference's kind, with the weights of ``source``, in a module's mode and dtype."""
    assert isinstance(backend, LayerBuilder)
    new = _like(backend, backend.layer(other.kind, other.settings), module)
    if backend.state(new):
        transfer(source, new)
    return new


def training_flag(case: Case) -> Iterator[ProvenChange]:
    """The one is in train mode and the other is not."""
    other = case.reference_node
    if other is None or other.training == case.node.training:
        return
    measured = case.tried(_in_mode(case, other.training))
    if measured <= case.limit:
        message = phrase(
            "{place} is in {reference} mode in the reference, in {port} mode in the port",
            place=place(case.node),
            reference=MODES[other.training],
            port=MODES[case.node.training],
        )
        fix = PortLine.mode(case.node.path, MODES[other.training])
        yield ProvenChange("mode.training", message, fix, measured, facts=("is in", MODES[other.training]))


def other_mode(case: Case) -> Iterator[ProvenChange]:
    """Code that does in one mode what the reference does in the other: it tests the flag the wrong way."""
    other = case.reference_node
    if other is None or other.training != case.node.training or case.node.framework_layer:
        return
    measured = case.tried(_in_mode(case, not other.training))
    if measured <= case.limit:
        mode, opposite = MODES[other.training], MODES[not other.training]
        message = phrase(
            "{place} does in {mode} mode what the reference does in {opposite} mode: in {opposite} "
            "mode it gives what the reference gives here",
            place=place(case.node),
            mode=mode,
            opposite=opposite,
        )
        fix = phrase(
            "turn round what {spelled_path} does in train mode and in eval mode",
            spelled_path=spelled_path(case.node.path),
        )
        yield ProvenChange("mode.training", message, fix, measured, facts=("acts as in", opposite))


def _in_mode(case: Case, training: bool) -> Callable[[Any], None]:
    def prepare(twin: Any) -> None:
        for module in case.backend.modules(twin).values():
            module.training = training

    return prepare


def rebuilt(backend: Backend, module: Any, settings: Mapping[str, Any], source: Any = None) -> Any:
    """A layer of the module's kind with other settings and the same weights, mode and dtype.

    Where the weights have another shape then, they are those of ``source``, a layer like the new one.
    """
    assert isinstance(backend, LayerBuilder)
    new = _like(backend, backend.layer(backend.kind(module), settings), module)
    if source is not None and shapes(backend, new) != shapes(backend, module):
        transfer(source, new)
        return new
    before = {entry.path: entry.value for entry in backend.state(module)}
    after = {entry.path: entry.value for entry in backend.state(new)}
    if not after.keys() <= before.keys():  # some keep more once they have run
        raise UnsupportedError(
            phrase(
                "weights {before} do not fit a layer that has {after}",
                before=sorted(before),
                after=sorted(after),
            )
        )
    for path, tensor in after.items():
        backend.write(tensor, backend.to_array(before[path]))
    return new


def shapes(backend: Backend, module: Any) -> dict[str, tuple[int, ...]]:
    """Of the parameters, by path."""
    return {
        entry.path: tuple(backend.shape(entry.value))
        for entry in backend.state(module)
        if entry.role == "parameter"
    }


def _like(backend: Backend, new: Any, module: Any) -> Any:
    """In the module's dtype and mode."""
    dtypes = [
        {backend.dtype(entry.value) for entry in backend.state(each) if entry.role == "parameter"}
        for each in (module, new)
    ]
    if dtypes[0] - dtypes[1]:
        new = backend.copy_as(new, sorted(dtypes[0])[0])
    new.train() if module.training else new.eval()
    return new


def _can_build(case: Case) -> bool:
    return isinstance(case.backend, LayerBuilder) and case.backend.can_build(case.module)


def _tried(case: Case, changed: Mapping[str, Any]) -> ProvenChange | None:
    backend, node, other = case.backend, case.node, case.reference_node
    assert isinstance(backend, LayerBuilder)
    assert other is not None
    settings = {**node.settings, **changed}
    # what a container calls inside may come in another order then
    judged = case if node.is_leaf else case.at_outputs()
    other_shapes: list[str] = []

    def made(twin: Any) -> Any:
        new = rebuilt(backend, twin, settings, case.reference_module)
        other_shapes[:] = _changed_shapes(shapes(backend, new), shapes(backend, twin))
        return new

    measured = judged.score(judged.run(made, inside=node.is_leaf), "forward")
    if measured > case.limit:
        return None
    values = joined("; ", (two_values(name, value, node.settings[name]) for name, value in changed.items()))
    values = joined(": ", (values, joined(", ", other_shapes))) if other_shapes else values
    line = backend.spell(node.kind, settings, list(changed))
    code = code_of(next(iter(changed)), node.kind)
    message, fix = (
        phrase("{values} ({kind} {place})", values=values, kind=node.kind, place=place(node)),
        PortLine.layer(node.path, line),
    )
    facts = tuple(
        fact for name, value in changed.items() for fact in (name, said(value), said(node.settings[name]))
    )
    return ProvenChange(code, message, fix, measured, facts=(node.kind, *facts, *other_shapes))


def _changed_shapes(
    wanted: Mapping[str, tuple[int, ...]], present: Mapping[str, tuple[int, ...]]
) -> list[str]:
    """What the reference's weights look like in the port, and what is there instead."""
    found = []
    for path in dict.fromkeys((*wanted, *present)):
        right, wrong = (side.get(path) for side in (wanted, present))
        if right != wrong:
            found.append(
                phrase(
                    "{path} {wrong} for {right}",
                    path=path,
                    wrong=list(wrong) if wrong else phrase("is not there"),
                    right=list(right) if right else phrase("none"),
                )
            )
    return found
