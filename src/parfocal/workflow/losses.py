"""``compare_loss``: do two losses give the same value and the same gradient.

They are called with their own side's tensors. Besides what the user gives, inputs of the same kind that are
known to be hard are tried (ignored labels, extreme logits, exact hits); what differs only there is worth
knowing and no divergence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from parfocal.backends import registry
from parfocal.backends.building import LayerBuilder
from parfocal.backends.module_tree import ModuleTree
from parfocal.backends.protocol import Array, Backend
from parfocal.brief import brief, told
from parfocal.errors import EmptyComparisonError, InputError, ParfocalError, UnsupportedError
from parfocal.explain.loss_causes import Arrays, LossPair, LossSample, cause_of, nothing_counted, off
from parfocal.inputs import Sides, split
from parfocal.judge import limits
from parfocal.judge.floors import EPSILON, NOTHING, Size, difference, error_of, score, size_of
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.picture import picture_of
from parfocal.judge.verdict import Cause, Claim, Divergence, Finding, ProvenBy, Site, side_name
from parfocal.phrases import joined, phrase
from parfocal.report.coverage import Compared, Coverage, LeftOut, Reason
from parfocal.report.report import Report
from parfocal.workflow.loss_code import cause_in_code
from parfocal.workflow.pictures import with_few_pictures

LIMIT = limits.verdicts.WHOLE_MODEL.value
CODES = {
    **dict.fromkeys(("reduction",), "loss.reduction"),
    **dict.fromkeys(("ignore_index",), "loss.ignore_index"),
    **dict.fromkeys(("label_smoothing",), "loss.label_smoothing"),
    **dict.fromkeys(("weighted", "positive_weighted"), "loss.weight"),
    **dict.fromkeys(("beta", "is_huber"), "loss.beta"),
}


@dataclass(frozen=True, slots=True)
class LossResult:
    """A loss and the gradients of what it was given, by the number of the input."""

    value: Array
    gradients: dict[int, Array]


class LossSide(Protocol):
    """One loss, wherever it is computed."""

    @property
    def name(self) -> str: ...
    @property
    def framework(self) -> str: ...
    def evaluate(self, inputs: Arrays, *, gradients: bool = True) -> LossResult: ...
    def tried(self, inputs: Arrays) -> Array | None:
        """The value alone; None where the loss cannot be had of these inputs."""


@dataclass(frozen=True, slots=True)
class LocalLoss:
    """A loss of this process and the framework whose tensors it takes."""

    words: str
    function: Callable[..., Any]
    backend: Backend

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    @property
    def framework(self) -> str:
        return self.backend.name

    def evaluate(self, inputs: Arrays, *, gradients: bool = True) -> LossResult:
        backend = self.backend
        learnt = _learnt(inputs) if gradients else []
        tensors = [
            backend.from_array(array, requires_grad=number in learnt) for number, array in enumerate(inputs)
        ]
        loss = self.function(*tensors)
        if not backend.is_tensor(loss):
            raise InputError(
                phrase(
                    "the {words}'s loss gives {loss}, not a tensor of {name}",
                    words=side_name(self.words),
                    loss=brief(loss),
                    name=backend.name,
                ),
                hint=phrase("return the loss as the framework's own tensor"),
            )
        value = backend.to_array(loss)
        if not learnt or not backend.requires_grad(loss):
            return LossResult(value, {})
        backend.backward([loss], [backend.from_array(np.ones_like(value))])
        found = {number: backend.gradient(tensors[number]) for number in learnt}
        return LossResult(value, {number: array for number, array in found.items() if array is not None})

    def tried(self, inputs: Arrays) -> Array | None:
        try:
            return self.evaluate(inputs, gradients=False).value
        except Exception:  # noqa: BLE001 - whatever a loss raises of inputs it was not made for
            return None


def compare_loss(reference: Any, port: Any, *inputs: Any) -> Report:
    """Compare two losses, functions or loss layers, on the same inputs: value and gradients.

    ``inputs`` are what a loss is called with, the prediction first and the label last; arrays or tensors of
    either framework, or ``pf.sides(...)`` where the two take different ones.
    """
    if reference is port:
        raise InputError(
            phrase("a loss compared with itself is always the same"), hint=phrase("pass two losses")
        )
    if not inputs:
        raise EmptyComparisonError(phrase("no inputs were given, so there is no loss to compare"))
    given = [_arrays([split(each)[number] for each in inputs]) for number in (0, 1)]
    shared = not any(isinstance(each, Sides) for each in inputs)
    return judge_losses(
        local_loss(reference, "reference", given[0]),
        local_loss(port, "port", given[1]),
        given[0],
        given[1],
        shared,
    )


def judge_losses(
    ours: LossSide, theirs: LossSide, for_reference: Arrays, for_port: Arrays, shared: bool
) -> Report:
    """Compare two losses on arrays; ``shared`` says that both are given the same."""
    given = for_reference, for_port
    results = _evaluated("reference", ours, given[0]), _evaluated("port", theirs, given[1])
    divergences = list(_differences(ours, theirs, given[0], results, shared))
    tried, findings = _hard_cases(ours, theirs, given[0]) if shared and not divergences else (0, [])
    keys = [result.gradients.keys() for result in results]
    only = [keys[0] - keys[1], keys[1] - keys[0]]
    return Report(
        reference_name=f"{ours.name} ({ours.framework})",
        port_name=f"{theirs.name} ({theirs.framework})",
        divergences=with_few_pictures(divergences),
        findings=tuple(findings),
        coverage=Coverage(
            (
                Compared("values", int(results[0].value.size)),
                Compared("gradients", len(results[0].gradients.keys() & results[1].gradients.keys())),
                Compared("hard cases", tried),
            ),
            tuple(
                LeftOut(phrase("gradient of input {number}", number=number), reason)
                for numbers, reason in zip(only, (Reason.ONLY_REFERENCE, Reason.ONLY_PORT), strict=True)
                for number in numbers
            ),
        ),
        limit=LIMIT,
    )


def _evaluated(words: str, side: LossSide, inputs: Arrays) -> LossResult:
    """What a loss raises of what the user gave is one clear error."""
    try:
        return side.evaluate(inputs)
    except ParfocalError:
        raise
    except Exception as error:
        raise InputError(
            phrase(
                "{what} of the {side} raised {name}{where}: {words}",
                what=phrase("the loss"),
                side=side_name(words),
                name=type(error).__name__,
                where="",
                words=told(error),
            ),
            hint=phrase("call it by hand once: loss(prediction, label)"),
        ) from error


def _arrays(inputs: list[Any]) -> Arrays:
    arrays = []
    for value in inputs:
        if isinstance(value, (np.ndarray, np.generic, float, int, list)):
            arrays.append(np.asarray(value))
            continue
        backend = registry.of(value)
        if not backend.is_tensor(value):
            raise InputError(phrase("a loss is given arrays and tensors, not {value}", value=brief(value)))
        arrays.append(backend.to_array(value))
    return tuple(arrays)


def _learnt(inputs: Arrays) -> list[int]:
    """The inputs that a gradient goes to: all with a rounding, but for the label at the end."""
    floating = [number for number, array in enumerate(inputs) if array.dtype.name in EPSILON]
    return floating[:-1] if len(floating) > 1 and floating[-1] == len(inputs) - 1 else floating


def local_loss(function: Any, words: str, inputs: Arrays) -> LocalLoss:
    if not callable(function):
        raise InputError(
            phrase(
                "the {words} is {function}: not a loss that can be called",
                words=side_name(words),
                function=brief(function),
            )
        )
    try:
        return LocalLoss(words, function, registry.of(function))
    except InputError:
        pass  # a plain function: whose tensors it takes shows when it is called
    problems = []
    for name in _frameworks(function):
        side = LocalLoss(words, function, registry.get(name))
        try:
            side.evaluate(inputs, gradients=False)
        except Exception as error:  # noqa: BLE001 - the other framework's functions raise anything
            problems.append(f"{name}: {type(error).__name__}: {told(error)}")
        else:
            return side
    raise InputError(
        phrase(
            "the {words}'s loss takes the tensors of no framework ({problems})",
            words=side_name(words),
            problems=joined("; ", problems),
        ),
        hint=phrase("call it by hand once: loss(prediction, label)"),
    )


def _frameworks(function: Any) -> list[str]:
    """The installed frameworks, those that the function's code names first."""
    code = getattr(function, "__code__", None)
    scope = getattr(function, "__globals__", {})
    named = [getattr(scope.get(name), "__name__", name) for name in getattr(code, "co_names", ())]
    home = [getattr(function, "__module__", "") or ""]
    roots = [each.partition(".")[0] for each in (*home, *map(str, named))]
    return sorted(registry.available(), key=lambda name: name not in roots)


def _floor(side: LossSide, inputs: Arrays, result: LossResult, pick: Callable[[LossResult], Array]) -> Size:
    """What rounding makes unavoidable: size, one unit in the last place of the inputs, and float64."""
    own = pick(result)
    epsilon = EPSILON.get(own.dtype.name, EPSILON["float32"])
    floor = size_of(own) * epsilon
    generator = np.random.default_rng(0)
    moved = tuple(_moved(array, generator) for array in inputs)
    wide = tuple(a.astype(np.float64) if a.dtype.name in EPSILON else a for a in inputs)
    for other in (moved, wide):
        try:
            floor = floor | difference(pick(side.evaluate(other)).astype(own.dtype), own)
        except Exception:  # noqa: BLE001 - no kernel in float64: the other floors are used
            continue
    return floor


def _moved(array: Array, generator: np.random.Generator) -> Array:
    """Every number one unit in the last place up or down."""
    if array.dtype.name not in EPSILON:
        return array
    signs = generator.choice([-1.0, 1.0], array.shape)
    return np.asarray(array * (1 + signs * EPSILON[array.dtype.name])).astype(array.dtype)


def _differences(
    ours: LossSide, theirs: LossSide, inputs: Arrays, results: tuple[LossResult, LossResult], shared: bool
) -> Iterator[Divergence]:
    parts: list[tuple[str, str, Callable[[LossResult], Array]]] = [
        ("loss", phrase("the loss"), lambda r: r.value)
    ]
    for number in sorted(results[0].gradients.keys() & results[1].gradients.keys()):
        what = phrase("gradient of input {number}", number=number)
        parts.append(("gradient", what, lambda r, n=number: r.gradients[n]))  # type: ignore[misc]
    explained: Cause | None = None
    parted = False
    for phase, what, pick in parts:
        observed, expected = pick(results[1]), pick(results[0])
        comparison = compare_arrays(observed, expected)
        floor = NOTHING if comparison.equal else _floor(ours, inputs, results[0], pick)
        measured = 0.0 if comparison.equal else score(error_of(comparison), floor)
        if measured <= LIMIT:
            continue
        inherited = phase == "gradient" and parted
        parted = True
        if not inherited and shared:
            explained = _cause(ours, theirs, inputs) or nothing_counted(
                inputs, results[0].value, results[1].value
            )
        yield Divergence(
            phase,
            Site("", ours.name),
            Site("", theirs.name),
            phrase(
                "{what}: {reference} in the reference, {port} in the port",
                what=what,
                reference=_shown(expected),
                port=_shown(observed),
            ),
            replace(comparison, picture=picture_of(observed, expected)),
            floor,
            measured,
            inherited=inherited,
            cause=None if inherited else explained,
        )


def _shown(array: Array) -> str:
    return f"{float(array.reshape(-1)[0]):.7g}" if array.size == 1 else brief(array)


def _cause(ours: LossSide, theirs: LossSide, inputs: Arrays) -> Cause | None:
    """Settings that differ, proven by a loss made anew; what the values say; or what the code does."""
    return (
        next(_settings(ours, theirs, inputs), None)
        or _from_values(ours, theirs, inputs)
        or _from_code(ours, theirs, inputs)
    )


def _from_code(ours: LossSide, theirs: LossSide, inputs: Arrays) -> Cause | None:
    if not (isinstance(ours, LocalLoss) and isinstance(theirs, LocalLoss)):
        return None
    one, other = ours.backend, theirs.backend
    if not (isinstance(one, ModuleTree) and isinstance(other, ModuleTree)) or one is other:
        return None
    if one.is_model(ours.function) or other.is_model(theirs.function):
        return None
    classes = one.module_class, other.module_class
    return cause_in_code(ours.function, theirs.function, classes, inputs)


def _settings(ours: LossSide, theirs: LossSide, inputs: Arrays) -> Iterator[Cause]:
    if not (isinstance(ours, LocalLoss) and isinstance(theirs, LocalLoss)):
        return
    backend, right = theirs.backend, ours.tried(inputs)
    if not (ours.backend.is_model(ours.function) and backend.is_model(theirs.function)) or right is None:
        return
    if not isinstance(backend, LayerBuilder):
        return
    kinds = ours.backend.kind(ours.function), backend.kind(theirs.function)
    own, other = backend.settings(theirs.function), ours.backend.settings(ours.function)
    if kinds[0] != kinds[1]:
        return
    for name in [name for name in own if name in other and own[name] != other[name]]:
        changed = {**own, name: other[name]}
        try:
            value = LocalLoss("port", backend.layer(kinds[1], changed), backend).tried(inputs)
            line = backend.spell(kinds[1], changed, [name])
        except UnsupportedError:
            continue
        if (
            value is not None
            and value.shape == right.shape
            and np.allclose(value, right, rtol=1e-5, atol=1e-7)
        ):
            message = phrase(
                "{name} is {reference} in the reference, {port} in the port",
                name=name,
                reference=brief(other[name]),
                port=brief(own[name]),
            )
            claim = Claim(CODES.get(name, "loss.input"), message, line)
            yield claim.proven(ProvenBy.RECOMPUTED, off(theirs.tried(inputs), right), off(value, right))


def _from_values(ours: LossSide, theirs: LossSide, inputs: Arrays) -> Cause | None:
    samples = []
    for each in (inputs, *_parts(inputs)):
        right, wrong = ours.tried(each), theirs.tried(each)
        if right is not None and wrong is not None and np.isfinite(right).all() and np.isfinite(wrong).all():
            samples.append(LossSample(each, right, wrong))
    return cause_of(LossPair(samples, ours.tried, theirs.tried)) if samples else None


def _parts(inputs: Arrays) -> Iterator[Arrays]:
    """Parts of a batch, so that a cause has to fit more than one number."""
    count = min((len(each) for each in inputs if each.ndim), default=0)
    if count < 3 or any(each.ndim and len(each) != count for each in inputs):
        return
    for keep in (slice(0, count - 1), slice(0, (count + 1) // 2), slice(1, None, 2)):
        yield tuple(np.ascontiguousarray(each[keep]) if each.ndim else each for each in inputs)


def _hard_cases(ours: LossSide, theirs: LossSide, inputs: Arrays) -> tuple[int, list[Finding]]:
    """How many hard cases both could compute, and which of them differ."""
    tried, findings = 0, []
    for name, case in _hard_inputs(inputs):
        values = ours.tried(case), theirs.tried(case)
        if values[0] is None or values[1] is None:
            if (values[0] is None) != (values[1] is None):
                side = "reference" if values[0] is None else "port"
                findings.append(
                    Finding(
                        "loss.unseen",
                        phrase(
                            "with {name} the {side}'s loss raises, the other's does not",
                            name=name,
                            side=side_name(side),
                        ),
                    )
                )
            continue
        tried += 1
        comparison = compare_arrays(values[1], values[0])
        if (
            not comparison.equal
            and score(error_of(comparison), size_of(values[0]) * EPSILON["float32"] * 8) > LIMIT
        ):
            findings.append(
                Finding(
                    "loss.unseen",
                    phrase(
                        "with {name}, which these inputs do not have, the loss is {reference} in the "
                        "reference and {port} in the port",
                        name=name,
                        reference=_shown(values[0]),
                        port=_shown(values[1]),
                    ),
                )
            )
    return tried, findings


def _hard_inputs(inputs: Arrays) -> Iterator[tuple[str, Arrays]]:
    """Inputs of the same kind on which losses are known to part."""
    first, last = inputs[0], inputs[-1]
    if first.dtype.name in EPSILON:
        yield phrase("predictions 30 times as large"), ((first * 30).astype(first.dtype), *inputs[1:])
        yield phrase("predictions of 0"), (np.zeros_like(first), *inputs[1:])
    if len(inputs) > 1 and last.dtype.kind in "iu" and last.size > 2:
        some = last.copy()
        some.reshape(-1)[::3] = -100
        if not (last < 0).any():
            yield phrase("labels of -100 (ignored)"), (*inputs[:-1], some)
    if len(inputs) > 1 and last.shape == first.shape and last.dtype == first.dtype:
        yield phrase("predictions that are exactly the target"), (last.copy(), *inputs[1:])
    if first.ndim and len(first) > 1 and all(each.ndim and len(each) == len(first) for each in inputs):
        yield phrase("a single sample"), tuple(np.ascontiguousarray(each[:1]) for each in inputs)
