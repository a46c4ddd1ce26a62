"""Rules of the user's own, for layers that no table can describe.

A rule names a class of the reference, a class of the port, and a function that copies from one
module to the other by itself. Pairs of modules that a rule takes care of are left out of matching.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from parfocal.errors import InputError

Copier = Callable[[Any, Any], None]


@dataclass(frozen=True, slots=True)
class Rule:
    """How to copy a module of one class into a module of another."""

    reference_framework: str
    reference_class: str
    port_framework: str
    port_class: str
    function: Copier

    def fits_reference(self, framework: str, module: Any) -> bool:
        return framework == self.reference_framework and _named(module, self.reference_class)

    def fits_port(self, framework: str, module: Any) -> bool:
        return framework == self.port_framework and _named(module, self.port_class)


_registered: list[Rule] = []


def register_rule(
    reference_framework: str, reference_class: str, port_framework: str, port_class: str, function: Copier
) -> Rule:
    """Add a rule for every later transfer. Classes are named by class name or by full dotted name."""
    if not callable(function):
        raise InputError(
            f"a rule's function takes (reference_module, port_module); {function!r} cannot be called"
        )
    rule = Rule(reference_framework, reference_class, port_framework, port_class, function)
    _registered.append(rule)
    return rule


def unregister_rule(rule: Rule) -> None:
    """Take a rule back."""
    if rule not in _registered:
        raise InputError(f"this rule is not registered: {rule.reference_class} -> {rule.port_class}")
    _registered.remove(rule)


def all_rules(own: Sequence[Rule] | None) -> list[Rule]:
    """The rules of this call first, then the registered ones, the latest first."""
    for rule in own or ():
        if not isinstance(rule, Rule):
            raise InputError(
                f"rules= takes parfocal.weights.rules.Rule objects, not {type(rule).__name__}",
                hint="Rule('torch', 'MyLayer', 'paddle', 'MyLayer', function)",
            )
    return [*(own or ()), *reversed(_registered)]


def _named(module: Any, name: str) -> bool:
    return any(
        name in (base.__name__, f"{base.__module__}.{base.__qualname__}") for base in type(module).__mro__
    )
