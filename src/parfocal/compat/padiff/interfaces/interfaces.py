"""``create_model``, ``assign_weight``, ``auto_diff`` and ``check_dataloader``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from parfocal.backends import registry
from parfocal.capture.nested_values import flatten
from parfocal.compat.opinion import HEAD, tell
from parfocal.compat.padiff import dump_tools
from parfocal.compat.padiff.abstracts import ProxyModel
from parfocal.compat.padiff.abstracts.folders import claim_folder
from parfocal.compat.padiff.comparing import CompareConfig, compare
from parfocal.compat.padiff.interfaces.diff_utils import OptimizerHelper, pipeline, show_options
from parfocal.compat.padiff.interfaces.options import Options
from parfocal.compat.padiff.utils import log
from parfocal.compat.padiff.weight_init.weights import assign, assign_weight_
from parfocal.errors import EmptyComparisonError, InputError
from parfocal.phrases import phrase

_NOTHING = object()


def create_model(model: Any, name: str | None = None, dump_freq: int = 1) -> ProxyModel:
    """Wrap a model of torch or paddle; ``dump_freq`` says every how many steps ``try_dump`` dumps."""
    if isinstance(model, ProxyModel):
        return model
    proxy = ProxyModel.create_from(model, name, dump_freq)
    proxy.dump_path = claim_folder(dump_tools.get_dump_root_path(), proxy.name, model)
    return proxy


def assign_weight(base_model: Any, raw_model: Any) -> bool:
    """Give the raw model the base model's weights. False, with the reason in the log, if that fails."""
    return assign_weight_(*_proxies(base_model, raw_model))


def auto_diff(
    base_model: Any,
    raw_model: Any,
    inputs: Sequence[Mapping[str, Any]],
    loss_fns: Sequence[Any] | None = None,
    optimizers: Sequence[Any] | None = None,
    **kwargs: Any,
) -> bool:
    """Run both models on their inputs, and say whether they agree or where they first part.

    Options: ``atol`` (0), ``rtol`` (1e-7), ``compare_mode`` ("mean", "strict", "abs_mean"),
    ``auto_init`` (True), ``diff_phase`` ("both", "forward", "backward"), ``single_step`` (False)
    and ``steps`` (1, more with optimizers).
    """
    loss_fns = kwargs.pop("loss_fn", None) if loss_fns is None else loss_fns
    optimizers = kwargs.pop("optimizer", None) if optimizers is None else optimizers
    _check_inputs(inputs)
    losses = _pair(loss_fns, "loss_fns", phrase("a loss function"), callable)
    steppers = _pair(optimizers, "optimizers", phrase("an optimizer or a function"), OptimizerHelper.accepts)
    options = Options.of(kwargs, use_loss=loss_fns is not None, use_opt=optimizers is not None)
    base, raw = _proxies(base_model, raw_model)  # last: each claims a folder for its dumps
    show_options(options)
    partners = assign((base, raw)) if options.auto_init else None
    if options.auto_init and partners is None:
        return False
    helpers = [None if stepper is None else OptimizerHelper(stepper) for stepper in steppers]
    result = pipeline((base, raw), inputs, losses, helpers, options, partners)
    log("SUCCESS !!!\n" if result else "FAILED !!!\n")
    return result


def check_dataloader(first_loader: Iterable[Any], second_loader: Iterable[Any], **kwargs: Any) -> bool:
    """Whether two loaders give the same batches; a batch is a tensor or any nesting of tensors."""
    config = CompareConfig.of(kwargs)
    batches = 0
    for number, (first, second) in enumerate(zip_longest(first_loader, second_loader, fillvalue=_NOTHING)):
        if first is _NOTHING or second is _NOTHING:
            raise RuntimeError("Given dataloader return difference number of datas.")
        text = _batch_difference(first, second, config)
        if text is not None:
            log("check dataloader failed!!!")
            print(f"batch {number}: {text}")
            return False
        batches += 1
    if not batches:
        raise EmptyComparisonError(phrase("both data loaders are empty: nothing was compared"))
    return True


def _batch_difference(first: Any, second: Any, config: CompareConfig) -> str | None:
    leaves = [list(flatten(batch).leaves.values()) for batch in (first, second)]
    if len(leaves[0]) != len(leaves[1]):
        return f"{len(leaves[0])} items against {len(leaves[1])}"
    for position, (left, right) in enumerate(zip(*leaves, strict=True)):
        arrays = _array(left), _array(right)
        if arrays[0] is None or arrays[1] is None:
            if left != right:
                return f"item {position}: {left!r} against {right!r}"
            continue
        outcome = compare(arrays[0], arrays[1], config)
        if outcome.hidden:
            told = phrase(
                "item {position} of a batch agrees on average only: {elements}",
                position=position,
                elements=outcome.hidden,
            )
            tell(HEAD + told)
        if not outcome.equal:
            return f"item {position}: AssertionError:  {outcome.text}"
    return None


def _array(value: Any) -> Any:
    """A tensor, array or number as an array; None for anything else."""
    if isinstance(value, (np.ndarray, np.generic, bool, int, float)):
        return np.asarray(value)
    if value is None or isinstance(value, (str, bytes)):
        return None
    backend = registry.of(value)
    return backend.to_array(value)


def _proxies(base_model: Any, raw_model: Any) -> tuple[ProxyModel, ProxyModel]:
    base, raw = (
        model
        if isinstance(model, ProxyModel)
        else create_model(model, f"{type(model).__name__}({place}_model)")
        for model, place in ((base_model, "base"), (raw_model, "raw"))
    )
    return base, raw


def _check_inputs(inputs: Any) -> None:
    fits = (
        isinstance(inputs, (tuple, list)) and len(inputs) == 2 and all(isinstance(i, Mapping) for i in inputs)
    )
    if not fits:
        raise InputError(
            phrase("inputs must be a pair of dicts, those of the base model first"),
            hint=phrase(
                'e.g. ({{"x": torch_tensor}}, {{"x": paddle_tensor}}); the models are called as '
                "model(**inputs)"
            ),
        )


def _pair(values: Sequence[Any] | None, name: str, what: str, accepts: Any) -> Sequence[Any]:
    if values is None:
        return (None, None)
    if len(values) != 2 or not all(accepts(value) for value in values):
        raise InputError(
            phrase(
                "{name} must be a pair, {what} for the base model and one for the raw model",
                name=name,
                what=what,
            )
        )
    return values
