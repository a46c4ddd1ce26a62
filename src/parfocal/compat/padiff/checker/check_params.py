"""Comparing the weights, buffers and gradients of two dumps.

Units of the two models are paired by their routes when these are the same on both sides, else by
definition order, mapped layers among themselves. Every tensor that differs is listed in a log file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from parfocal.compat.opinion import HEAD, opinion_on_values, tell
from parfocal.compat.padiff import utils
from parfocal.compat.padiff.checker.contents import State, read_state
from parfocal.compat.padiff.checker.dumps import Dump, paired_dumps
from parfocal.compat.padiff.checker.layer_maps import mapped_paths
from parfocal.compat.padiff.checker.statistics import CONVENTION, explained_by_convention
from parfocal.compat.padiff.checker.telling import tell_hidden
from parfocal.compat.padiff.checker.trees import write_trees
from parfocal.compat.padiff.comparing import CHECK_DEFAULT, CompareConfig, compare
from parfocal.compat.padiff.partners import Partners, pair_slots, pair_units
from parfocal.compat.padiff.utils import log
from parfocal.errors import EmptyComparisonError
from parfocal.judge.floors import rounding_score
from parfocal.phrases import joined, phrase
from parfocal.weights.tables import REQUIRED_BUFFERS
from parfocal.weights.units import Slot, Unit
from parfocal.weights.views import apply

Config = Mapping[str, object] | None
Folder = str | os.PathLike[str]


def check_params(report_path_0: Folder, report_path_1: Folder, cfg: Config = None) -> bool:
    """Whether weights, buffers and gradients of ``params.json`` agree. ``cfg`` holds for this call alone."""
    return _check("params", ("weights", "grads"), report_path_0, report_path_1, cfg)


def check_weights(
    report_path_0: Folder, report_path_1: Folder, cfg: Config = None, *, partners: Partners | None = None
) -> bool:
    """Whether weights and buffers of ``weights.json`` agree. ``cfg`` holds for this call alone."""
    return _check("weights", ("weights",), report_path_0, report_path_1, cfg, partners)


def check_grads(
    report_path_0: Folder,
    report_path_1: Folder,
    cfg: Config = None,
    *,
    partners: Partners | None = None,
    opinion: bool = True,
) -> bool:
    """Whether the gradients of ``grads.json`` agree. ``cfg`` holds for this call alone."""
    return _check("grads", ("grads",), report_path_0, report_path_1, cfg, partners, opinion)


def _check(
    what: str,
    targets: tuple[str, ...],
    first: Folder,
    second: Folder,
    cfg: Config,
    partners: Partners | None = None,
    opinion: bool = True,
) -> bool:
    config = CompareConfig.of(cfg, CHECK_DEFAULT)
    log(f"Check {what} cfg: {config.as_dict()}")
    agree = True
    begun: set[str] = set()
    for dumps in paired_dumps(first, second, f"{what}.json"):
        log(f"Checking {what} in {dumps[0].folder} and {dumps[1].folder}")
        for target in targets:
            agree &= _check_target(dumps, target, config, begun, partners, opinion)
    return agree


@dataclass(frozen=True)
class _Pair:
    """One canonical tensor on both sides."""

    base: State
    raw: State
    slots: tuple[Slot, Slot]

    @property
    def routes(self) -> tuple[str, str]:
        return self.slots[0].stored.path, self.slots[1].stored.path

    @property
    def elements(self) -> int:
        """How many numbers the layer was given in a call in training mode."""
        base, raw = self.base.owners[self.routes[0]], self.raw.owners[self.routes[1]]
        return int(base.get("elements", 0) or raw.get("elements", 0))


@dataclass
class _Findings:
    """What one comparison of a target has brought to light."""

    texts: list[str] = field(default_factory=list)
    scores: list[tuple[str, float | None]] = field(default_factory=list)  # of what the texts are about
    hidden: list[str] = field(default_factory=list)
    conventions: list[str] = field(default_factory=list)
    compared: int = 0


def _check_target(
    dumps: tuple[Dump, Dump],
    target: str,
    config: CompareConfig,
    begun: set[str],
    partners: Partners | None,
    opinion: bool,
) -> bool:
    states = read_state(dumps[0], target), read_state(dumps[1], target)
    problem = None
    findings = _Findings()
    for pair in _pairs(*states, mapped_paths(dumps), partners):
        if isinstance(pair, str):
            problem = pair
            break
        _compare_pair(pair, target, config, findings)
    if problem is not None:
        log("=" * 10 + f"Err occurs when compare {target}!!!" + "=" * 10 + "\n")
        paths = write_trees(dumps, (None, None), target)
        print(f"{problem}\n\nLogs: {paths[0]}\n      {paths[1]}\n")
        return False
    if not findings.compared:
        raise EmptyComparisonError(
            phrase(
                "no {target} of {folder} were compared with those of {other}",
                target=target,
                folder=dumps[0].folder,
                other=dumps[1].folder,
            ),
            hint=phrase("check the black and white lists, and that the models have parameters"),
        )
    agree = _conclude(findings, target, dumps[0].named(f"{target}_diff"), config, begun)
    if opinion:
        tell(opinion_on_values(findings.scores))
    return agree


def _conclude(findings: _Findings, target: str, name: str, config: CompareConfig, begun: set[str]) -> bool:
    for route in findings.conventions:
        tell(joined(": ", (HEAD + route, CONVENTION)))
    tell_hidden(findings.hidden, config)
    if not findings.texts:
        log(f"{target} compared.")
        return True
    path = utils.log_file(name, "a" if name in begun else "w", "".join(findings.texts))
    begun.add(name)
    log(f"Diff found when compare {target}, please check report \n        {path}")
    return False


def _compare_pair(pair: _Pair, target: str, config: CompareConfig, findings: _Findings) -> None:
    arrays = [
        state.dump.array(state.files[slot.stored.path])
        for state, slot in zip((pair.base, pair.raw), pair.slots, strict=True)
    ]
    findings.compared += 1
    if arrays[0] is None or arrays[1] is None:
        absent = [side for side, array in zip(("base", "raw"), arrays, strict=True) if array is None]
        if len(absent) == 1:
            text = f"RuntimeError:  Found grad in {absent[0]}_model is `None`, when another is not!"
            findings.texts.append(_entry(pair, target, text))
            findings.scores.append((pair.routes[0], None))
        return
    views = apply(pair.slots[0].view, arrays[0]), apply(pair.slots[1].view, arrays[1])
    outcome = compare(*views, config)
    if outcome.hidden:
        findings.hidden.append(f"{pair.routes[0]}: {outcome.hidden}")
    if outcome.equal:
        return
    frameworks = pair.base.dump.framework, pair.raw.dump.framework
    if pair.slots[0].role == "running_var" and explained_by_convention(
        views, frameworks, pair.elements, config
    ):
        findings.conventions.append(pair.routes[0])
        return
    findings.texts.append(_entry(pair, target, f"AssertionError:  {outcome.text}"))
    findings.scores.append((pair.routes[0], rounding_score(*views)))


def _entry(pair: _Pair, target: str, text: str) -> str:
    owners = pair.base.owners[pair.routes[0]], pair.raw.owners[pair.routes[1]]
    return (
        "=" * 25 + f"\n{target} value is different.\n"
        f"between base_model: {owners[0]['repr']}\n"
        f"        raw_model:  {owners[1]['repr']}\n\n"
        f"base_model param path:\n    {pair.routes[0]}\n"
        f"raw_model param path:\n    {pair.routes[1]}\n\n"
        f"{text}\n\n"
    )


def _pairs(
    base: State, raw: State, layer_map: Mapping[str, str], partners: Partners | None
) -> Iterator[_Pair | str]:
    """Pairs of tensors, or the sentence why the two trees cannot be paired any further."""
    for mapped in (*layer_map.items(), None):
        ours, theirs = (_group(state, layer_map, mapped, side) for side, state in enumerate((base, raw)))
        units = _paired_units(ours, theirs, partners)
        if units is None:
            if mapped is None:
                yield "RuntimeError:  Found model with difference number of sublayers. Check your model."
                return
            log(f"{mapped[0]} and {mapped[1]} are built differently inside: their weights are not compared.")
            continue
        for first, second in units:
            yield from _paired_slots(base, raw, first, second, mapped is not None)


def _group(
    state: State, layer_map: Mapping[str, str], mapped: tuple[str, str] | None, side: int
) -> list[Unit]:
    """The units inside one mapped layer, or those inside none."""
    heads = [pair[side] for pair in layer_map.items()]
    if mapped is not None:
        return [unit for unit in state.units if _inside(unit, mapped[side])]
    return [unit for unit in state.units if not any(_inside(unit, head) for head in heads)]


def _inside(unit: Unit, route: str) -> bool:
    return unit.path == route or unit.path.startswith(f"{route}.")


def _paired_units(
    base: list[Unit], raw: list[Unit], partners: Partners | None
) -> list[tuple[Unit, Unit]] | None:
    """Every unit with parameters has a partner, or there is no pairing; other buffers pair by route."""
    first, second = ([unit for unit in units if unit.required] for units in (base, raw))
    found = pair_units(first, second, partners, path_of=_local)
    if found is None:
        return None
    by_path = {_local(unit): unit for unit in raw}
    return found + [
        (unit, by_path[_local(unit)]) for unit in base if not unit.required and _local(unit) in by_path
    ]


def _local(unit: Unit) -> str:
    """The route without the model's name."""
    return unit.path.partition(".")[2]


def _paired_slots(base: State, raw: State, first: Unit, second: Unit, mapped: bool) -> Iterator[_Pair | str]:
    pairs, only = pair_slots(first, second)
    if base.dump.foreign or raw.dump.foreign:
        only = [role for role in only if role not in REQUIRED_BUFFERS]  # torch's were not dumped
    if only and not mapped:
        yield (
            f"RuntimeError:  {', '.join(only)} on one side only\n"
            "Error occured between:\n"
            f"    (base_model):  {first.path}\n"
            f"    (raw_model):   {second.path}"
        )
        return
    for slots in pairs:
        yield _Pair(base, raw, slots)
