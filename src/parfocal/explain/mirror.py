"""The mirror image of a trial: which reference would compute what the port computes?

Where the port's layer is hand-written it cannot be rebuilt with another setting, but the
reference's can. A setting of it that is a number is solved for: the value with which the
reference reproduces the port's result is the value that the port behaves as if it had.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from scipy.optimize import minimize_scalar

from parfocal.backends.building import LayerBuilder
from parfocal.backends.protocol import Array
from parfocal.explain.case import Case
from parfocal.explain.causes import Proof, code_of, number, place, said, spelled_path
from parfocal.explain.settings import rebuilt
from parfocal.replay.layouts import fit

# Settings that are numbers -> values people use, tried before solving; the range on a log scale.
SOLVED: dict[str, tuple[tuple[float, ...], tuple[float, float]]] = {
    "epsilon": ((1e-5, 1e-6, 1e-3, 1e-12, 1e-8, 1e-7, 1e-4, 1e-2, 0.0), (1e-13, 1.0)),
    "negative_slope": ((0.01, 0.1, 0.2, 0.25, 0.3, 0.0), (1e-4, 1.0)),
    "alpha": ((1.0, 0.1, 0.5, 1e-4), (1e-6, 10.0)),
    "beta": ((1.0, 0.5, 0.75, 2.0), (1e-3, 100.0)),
    "threshold": ((0.5, 1.0, 0.0, 20.0), (1e-3, 100.0)),
}
STEPS = 40


def solved_setting(case: Case) -> Iterator[Proof]:
    """A number of the reference's layer that would have to be another one."""
    node, backend = case.reference_node, case.reference_backend
    if node is None or not isinstance(backend, LayerBuilder) or not backend.can_build(case.reference_module):
        return
    if isinstance(case.backend, LayerBuilder) and case.backend.can_build(case.module):
        return  # a library's layer has the settings that it says it has
    if case.checks[0].reference[:2] != (case.counterpart, "output"):
        return
    for name, (usual, bounds) in SOLVED.items():
        if isinstance(node.settings.get(name), float):
            found = _solve(case, name, usual, bounds)
            if found is not None:
                yield _proof(case, name, *found)
                return


def _solve(
    case: Case, name: str, usual: tuple[float, ...], bounds: tuple[float, float]
) -> tuple[list[float], float] | None:
    """The values that fit, best first, and their score: usual ones if any fit, else the best of all."""
    observed = case.observed()
    if observed is None:
        return None
    tried = sorted((_score(case, name, value, observed), rank, value) for rank, value in enumerate(usual))
    if tried[0][0] <= case.limit:
        return [value for score, _, value in tried if score <= case.limit], tried[0][0]
    if not math.isfinite(tried[0][0]):
        return None

    def cost(logarithm: float) -> float:
        return math.log(_score(case, name, math.exp(logarithm), observed) + 1e-9)

    answer = minimize_scalar(
        cost, bounds=tuple(map(math.log, bounds)), method="bounded", options={"maxiter": STEPS, "xatol": 1e-4}
    )
    value = float(math.exp(answer.x))
    for candidate in (float(f"{value:.1e}"), float(f"{value:.2e}"), value):
        score = _score(case, name, candidate, observed)
        if score <= case.limit:
            return [candidate], score
    return None


def _score(case: Case, name: str, value: float, observed: Array) -> float:
    """How far the reference with this value is from what the port gives."""
    node = case.reference_node
    assert node is not None
    settings = {**node.settings, name: value}

    def prepare(twin: Any) -> Any:
        return rebuilt(case.reference_backend, twin, settings)

    repeated = case.run_reference(prepare)
    check = case.checks[0]
    mirrored = None if repeated is None else repeated.places.get(check.reference)
    if mirrored is None:
        return math.inf
    layout = fit(mirrored, observed)
    return math.inf if layout is None else case.judge(observed, layout.apply(mirrored), check)


def _proof(case: Case, name: str, values: list[float], score: float) -> Proof:
    node = case.reference_node
    assert node is not None
    own = node.settings[name]
    message = (
        f"{name} is {said(own)} in the reference ({node.kind}); {place(case.node)} of the port behaves as "
        f"with {name} = {' or '.join(map(number, values))}"
    )
    fix = f"use {name} = {said(own)} in {spelled_path(case.node.path)}"
    return Proof(code_of(name, node.kind), message, fix, score)
