"""``align``: are two models the same, and where do they first part."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from parfocal.attribution.ignoring import patterns_of
from parfocal.attribution.observation import Observation, limits_of
from parfocal.attribution.sides import Arguments, Loss, ModelSide, check_outputs
from parfocal.backends import registry
from parfocal.backends.checks import check_mode
from parfocal.backends.protocol import Array, Backend, Mode
from parfocal.brief import brief
from parfocal.capture.determinism import dropping as dropping_modules
from parfocal.capture.determinism import kept_scales
from parfocal.capture.nested_values import flatten_call, replace_call
from parfocal.collecting import OF_MANY_CALLS, full_collections_put_off
from parfocal.errors import EmptyComparisonError, InputError, TransferError, UnsupportedError
from parfocal.explain.allowance import THOROUGH
from parfocal.inputs import arguments, check_names, split
from parfocal.judge import limits
from parfocal.judge.floors import EPSILON
from parfocal.judge.tolerance import Tolerance
from parfocal.judge.verdict import SIDES, side_name
from parfocal.phrases import phrase
from parfocal.replay.ledger import parse_amount
from parfocal.report.report import Report
from parfocal.weights.correspondence import correspond
from parfocal.weights.plan import Plan
from parfocal.weights.transfer import transfer as copy_weights
from parfocal.workflow.alignment import Alignment
from parfocal.workflow.computed import computed
from parfocal.workflow.dropping import Dropping
from parfocal.workflow.nonfinite import first_nonfinite
from parfocal.workflow.progress import telling_progress
from parfocal.workflow.reporting import report_of
from parfocal.workflow.state import weight_differences, weights_kept

CONFIDENT = limits.verdicts.FREE_OF_RUNS.value
DEAD = limits.verdicts.DEAD.value


def align(
    reference: Any,
    port: Any,
    inputs: Any,
    *,
    loss: Loss | tuple[Loss, Loss] | None = None,
    optimizers: Any = None,
    schedulers: Any = None,
    steps: int = 1,
    backward: bool = True,
    mode: Mode = "eval",
    transfer: bool | str | Path | Plan = True,
    level: str = "modules",
    tolerance: Tolerance | None = None,
    explain: bool | str = True,
    layers: Mapping[str, str] | None = None,
    ignore: str | Sequence[str] = (),
    memory: str | int | None = None,
    progress: bool | None = None,
) -> Report:
    """Compare a port with its reference, call by call, forward and backward.

    The reference's weights are copied into the port first (``transfer``). Errors are judged in
    units of what rounding makes unavoidable for this very call on this very input, or by a fixed
    ``tolerance`` when one is given. With ``explain`` every difference that follows from no other is
    put to the hypotheses of ``parfocal.explain``, for at most twice the work of the alignment unless it is
    ``"thorough"``. Calls whose path matches a pattern of ``ignore`` are led
    along and not judged. Neither model is changed but for the port's weights; with ``optimizers`` both are
    trained for ``steps`` updates on these inputs, and every phase of every step is compared as well.
    """
    _refuse_single_ops(level)
    if optimizers is not None or schedulers is not None or steps != 1:
        from parfocal.workflow.training.steps import align_steps  # which aligns steps by this function

        return align_steps(
            reference,
            port,
            inputs,
            loss=loss,
            optimizers=optimizers,
            schedulers=schedulers,
            steps=steps,
            backward=backward,
            mode=mode,
            transfer=transfer,
            tolerance=tolerance,
            explain=explain,
            layers=layers,
            ignore=ignore,
            memory=memory,
            progress=progress,
        )
    if reference is port:
        raise InputError(
            phrase("a model compared with itself is always the same"), hint=phrase("pass two models")
        )
    _check_arguments(loss, tolerance, transfer, layers)
    _check_explain(explain)
    ignore = patterns_of(ignore)
    check_mode(mode)
    budget = parse_amount(memory)

    def aligned(*, reproducing: bool) -> Report:
        with full_collections_put_off(OF_MANY_CALLS) as resume_collections:
            return judged(resume_collections, reproducing=reproducing)

    def judged(resume_collections: Callable[[], None], *, reproducing: bool) -> Report:
        sides = _sides(reference, port, inputs, loss, backward)
        plan = find_plan(sides, inputs, transfer, layers)
        dropped = dropping_modules(reference), dropping_modules(port)
        scales = kept_scales(reference, dropped[0]), kept_scales(port, dropped[1])
        dropping = Dropping(*dropped, mode, scales)
        differing = [] if transfer is not False else list(weight_differences(plan, *sides))
        made = computed(plan, *sides)
        alignment = Alignment(
            *sides,
            plan,
            layers or {},
            ignore,
            backward=backward,
            mode=mode,
            tolerance=tolerance,
            budget=budget,
        )
        with telling_progress(progress) as alignment.tell, alignment.observed() as observation:
            _check_alive(sides[0])
            check_outputs(*sides)
            _check_compared(observation, ignore)
            alignment.tell(phrase("judging and explaining"))
            if observation.has_more_than(limits_of(tolerance is not None)):
                resume_collections()  # the search for causes runs the user's code over and over
            return report_of(
                alignment,
                observation,
                differing,
                dropping,
                explain,
                reproducing=reproducing,
                made=made,
            )

    try:
        report = aligned(reproducing=False)
    except UnsupportedError as error:
        if (empty := _without_values(reference, port)) is not None:
            raise empty from error
        raise
    return replace(report, reproduction=lambda: aligned(reproducing=True).reproduction())


def _refuse_single_ops(level: str) -> None:
    if level != "modules":
        raise UnsupportedError(
            phrase("align does not compare single ops yet (level={level})", level=repr(level)),
            hint=phrase("compare modules, or record both sides with pf.record"),
        )


def _without_values(*models: Any) -> InputError | None:
    """The weights that have no values yet, where that is why the model cannot be used."""
    for words, model in zip(SIDES, models, strict=True):
        backend = registry.of(model)
        empty = [each.path for each in backend.state(model) if backend.device(each.value) == "meta"]
        if empty:
            return InputError(
                phrase(
                    "{count} tensors of the {words} are on the meta device, without values: {empty} ...",
                    count=len(empty),
                    words=side_name(words),
                    empty=empty[0],
                ),
                hint=phrase("load its weights, or make them: model.to_empty(device='cpu') and initialise"),
            )
    return None


def _check_compared(observation: Observation, ignore: Sequence[str]) -> None:
    nodes = observation.precise.port.trace.nodes
    if any(
        nodes[pair.port].parent is not None or nodes[pair.port].is_leaf for pair in observation.pairing.pairs
    ):
        return  # not only the two models as a whole
    if ignore:
        raise EmptyComparisonError(
            phrase("everything is ignored by {ignore}, so nothing was compared", ignore=list(ignore)),
            hint=phrase("ignore less"),
        )
    raise EmptyComparisonError(
        phrase("no call of the port could be paired with one of the reference, so nothing was compared"),
        hint=phrase("check that both are the same architecture, or say layers={{reference path: port path}}"),
    )


def _check_arguments(loss: Any, tolerance: Any, transfer: Any, layers: Any) -> None:
    losses = loss if isinstance(loss, tuple) else (loss, loss)
    if len(losses) != 2 or not all(each is None or callable(each) for each in losses):
        raise InputError(
            phrase(
                "loss={loss} is neither a function of the output nor a pair of such functions",
                loss=brief(loss),
            ),
            hint=phrase("e.g. loss=lambda output: output.mean(), or loss=(reference_loss, port_loss)"),
        )
    if not (tolerance is None or isinstance(tolerance, Tolerance)):
        raise InputError(
            phrase("tolerance={tolerance} is not a pf.Tolerance", tolerance=brief(tolerance)),
            hint=phrase("e.g. tolerance=pf.Tolerance(rtol=1e-5, atol=1e-6)"),
        )
    if not isinstance(transfer, (bool, str, os.PathLike, Plan)):
        raise InputError(
            phrase(
                "transfer={transfer} is neither True, False, a pf.Plan nor the path of one",
                transfer=brief(transfer),
            ),
            hint=phrase("transfer=True copies the reference's weights, transfer=False compares them"),
        )
    named = isinstance(layers, Mapping) and all(isinstance(path, str) for path in (*layers, *layers.values()))
    if not (layers is None or named):
        raise InputError(
            phrase("layers={layers} is not a dict of paths", layers=brief(layers)),
            hint="layers={reference path: port path}",
        )


def _check_explain(explain: Any) -> None:
    if not (isinstance(explain, bool) or explain == THOROUGH):
        raise InputError(
            phrase(
                "explain={explain} is neither True, False nor {thorough}",
                explain=brief(explain),
                thorough=repr(THOROUGH),
            ),
            hint=phrase("explain=True searches for causes for at most twice the work of the alignment"),
        )


def _sides(reference: Any, port: Any, inputs: Any, loss: Any, backward: bool) -> tuple[ModelSide, ModelSide]:
    losses: Sequence[Loss | None] = loss if isinstance(loss, tuple) else (loss, loss)
    sides = []
    for model, given, own_loss, words in zip((reference, port), split(inputs), losses, SIDES, strict=True):
        backend = registry.of_model(model, side_name(words))
        check_names(given, model, side_name(words))
        sides.append(ModelSide(words, backend, model, _maker(backend, given, backward), own_loss))
    return sides[0], sides[1]


def _maker(backend: Backend, given: Any, backward: bool) -> Callable[[], Arguments]:
    """Fresh inputs for every run; floating ones take part in autograd."""

    def make() -> Arguments:
        args, kwargs = arguments(given, backend)
        if not backward:
            return args, kwargs
        leaves = flatten_call(args, kwargs).leaves
        grown = {
            slot: _growing(backend, backend.to_array(leaf))
            for slot, leaf in leaves.items()
            if backend.is_tensor(leaf) and backend.dtype(leaf) in EPSILON
        }
        return replace_call(args, kwargs, grown)

    return make


def _growing(backend: Backend, array: Array) -> Any:
    """A tensor that takes part in autograd and that a model may change in place, unlike a leaf."""
    return backend.substitute(backend.from_array(array, requires_grad=True), array)


def find_plan(
    sides: tuple[ModelSide, ModelSide], inputs: Any, transfer: Any, layers: Mapping[str, str] | None
) -> Plan:
    """Copy the weights if the user asks for it; in any case find out which correspond."""
    reference, port = (model_side.model for model_side in sides)
    if transfer is False:
        known = correspond(reference, port, layers)
        if known is not None:
            return known
        with weights_kept(sides[1]):
            return find_plan(sides, inputs, True, layers)
    if transfer is not True:
        return copy_weights(reference, port, inputs, layers=layers, plan=transfer)
    try:
        plan = copy_weights(reference, port, layers=layers)
        if all(entry.confidence >= CONFIDENT for entry in plan.entries):
            return plan
    except TransferError:
        pass  # with inputs there is more to go by
    return copy_weights(reference, port, inputs, layers=layers, partial=True)


def _check_alive(model_side: ModelSide) -> None:
    """A verdict on nothing is an error: dead or constant outputs agree whatever the weights are."""
    outputs = {
        slot: array for slot, array in model_side.natural.outputs.items() if array.dtype.name in EPSILON
    }
    if not any(array.size for array in outputs.values()):
        shapes = ", ".join(str(list(array.shape)) for array in outputs.values())
        raise EmptyComparisonError(
            phrase(
                "the reference's outputs have no elements (shapes {shapes}), so there is nothing to compare",
                shapes=shapes,
            ),
            hint=phrase("give a batch of at least one sample"),
        )
    for slot, array in outputs.items():
        _check_finite(slot, array, model_side)
    if all(_dead(array) for array in outputs.values()):
        largest = max(float(np.abs(array.astype(np.float64)).max(initial=0.0)) for array in outputs.values())
        raise EmptyComparisonError(
            phrase(
                "the reference's outputs are all zero, constant or tiny (at most {largest}): any weights "
                "would agree",
                largest=f"{largest:.3g}",
            ),
            hint=phrase(
                "load trained weights, or re-scale the random ones so that signals live (e.g. "
                "normalisation weights to 1, larger initial weights)"
            ),
        )


def _check_finite(slot: str, array: Array, model_side: ModelSide) -> None:
    bad = int(np.size(array) - np.count_nonzero(np.isfinite(array.astype(np.float64))))
    if bad:
        raise InputError(
            phrase(
                "output {slot} of the reference has {bad} NaN or infinite values of {size}; the first that "
                "is not finite is {where}",
                slot=slot,
                bad=bad,
                size=array.size,
                where=_where_not_finite(model_side),
            ),
            hint=phrase(
                "check the reference's weights and the inputs: a comparison of NaN with NaN says nothing"
            ),
        )


def _where_not_finite(model_side: ModelSide) -> str:
    backend = model_side.backend
    args, kwargs = model_side.inputs()
    leaves = flatten_call(args, kwargs).leaves.values()
    arrays = [backend.to_array(leaf) for leaf in leaves if backend.is_tensor(leaf)]
    found = first_nonfinite(
        backend, model_side.model, model_side.side, arrays, lambda: model_side.model(*args, **kwargs)
    )
    return found or phrase("values that another run does not have")


def _dead(array: Array) -> bool:
    wide = np.abs(array.astype(np.float64))
    if not wide.size or float(wide.max()) < DEAD:
        return True
    return wide.size > 1 and float(np.ptp(array.astype(np.float64))) == 0.0
