"""Why two losses part that are code of the user's own: by the ops that they are made of.

A loss of several terms fits no formula. As a module's code it is put to the hypotheses that explain models.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from parfocal.backends.protocol import Array
from parfocal.errors import ParfocalError
from parfocal.judge.verdict import Cause
from parfocal.workflow.align import align


def cause_in_code(
    reference: Callable[..., Any],
    port: Callable[..., Any],
    module_classes: tuple[type[Any], type[Any]],
    inputs: tuple[Array, ...],
) -> Cause | None:
    """The first cause that is proven by running the port's code with one op changed."""
    ours, theirs = (_module(*each) for each in zip((reference, port), module_classes, strict=True))
    try:
        report = align(ours, theirs, inputs, backward=False, progress=False)
    except ParfocalError:
        return None  # no module can compute it so: there is nothing to see in its code
    causes = (each.cause for each in report.divergences)
    return next((each for each in causes if each is not None and each.proof is not None), None)


def _module(function: Callable[..., Any], module_class: type[Any]) -> Any:
    def forward(self: Any, *given: Any) -> Any:
        return function(*given)

    return type("Loss", (module_class,), {"forward": forward})()
