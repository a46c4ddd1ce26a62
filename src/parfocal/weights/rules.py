"""Rules of the user's own, for layers that no table can describe.

A rule names a class of the reference, a class of the port, and a function that copies from one
module to the other by itself. Pairs of modules that a rule takes care of are left out of matching.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from parfocal.errors import InputError
from parfocal.phrases import phrase

Copier = Callable[[Any, Any], None]


@dataclass(frozen=True, slots=True)
class Rule:
    """How to copy a module of one class into a module of another.

    Classes are named by class name or by full dotted name.
    """

    reference_framework: str
    reference_class: str
    port_framework: str
    port_class: str
    function: Copier

    def fits_reference(self, framework: str, module: Any) -> bool:
        return framework == self.reference_framework and _named(module, self.reference_class)

    def fits_port(self, framework: str, module: Any) -> bool:
        return framework == self.port_framework and _named(module, self.port_class)


def checked(rules: Sequence[Rule] | None) -> list[Rule]:
    """The rules of a call; an InputError for what is none."""
    for rule in rules or ():
        if not isinstance(rule, Rule):
            raise InputError(
                phrase(
                    "rules= takes parfocal.weights.rules.Rule objects, not {kind}", kind=type(rule).__name__
                ),
                hint="Rule('torch', 'MyLayer', 'paddle', 'MyLayer', function)",
            )
        if not callable(rule.function):
            raise InputError(
                phrase(
                    "a rule's function takes (reference_module, port_module); {function} cannot be called",
                    function=repr(rule.function),
                )
            )
    return list(rules or ())


def _named(module: Any, name: str) -> bool:
    return any(
        name in (base.__name__, f"{base.__module__}.{base.__qualname__}") for base in type(module).__mro__
    )
