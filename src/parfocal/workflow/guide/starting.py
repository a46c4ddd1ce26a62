"""``init``: a small project that runs at once, on a bundled pair or on the user's own models."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from parfocal.backends import registry
from parfocal.errors import InputError
from parfocal.judge.verdict import SIDES, side_name
from parfocal.phrases import Phrase, phrase, said
from parfocal.run.storage import storage_errors, write_atomically
from parfocal.workflow.guide.settings import FACTORIES, FILE
from parfocal.workflow.input_descriptions import make_inputs

ADAPTERS = {side: f"{side}_side.py" for side in SIDES}
FRAMEWORKS = tuple(
    sorted(registry.BUILTIN, reverse=True)
)  # of the reference and the port, if nothing says so
TOY_INPUT, TOY_LABEL = "x=float32[8,1,8,8]", "int64[8]:0..4"
PROSE = re.compile("«(.*?)»")
_UNUSED = ("clip", "parallel", "reduce")  # by the bundled pair
_TOY = tuple(name for name in FACTORIES if name not in _UNUSED)


def start_project(
    folder: str | Path, models: tuple[str, str] | None = None, inputs: Sequence[str] = (), label: str = ""
) -> Path:
    """Write ``parfocal.toml`` and an adapter for each side; nothing that is there is written over.

    ``models`` are the user's own two, as ``file.py:build``; then ``inputs`` describes what they take.
    """
    target = Path(folder)
    if models is not None and not inputs:
        raise InputError(
            phrase("init --from needs to know what the models take"),
            hint=phrase('e.g. --input "x=float32[4,3,224,224]"'),
        )
    if models is None and (inputs or label):
        raise InputError(
            phrase("init has inputs of its own for the bundled pair"), hint=phrase("--input goes with --from")
        )
    make_inputs([*inputs, *([label] if label else [])][: len(inputs)], 0)
    files = _toy() if models is None else _own(target, models, inputs, label)
    for name in files:
        if (target / name).exists():
            raise InputError(
                phrase("{path} is there already", path=target / name), hint=phrase("give another folder")
            )
    with storage_errors("write", target):
        target.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            write_atomically(target / name, text.encode())
    return target / FILE


def _template(name: str) -> str:
    """A file of the project, with what it tells people («so») in the language of the terminal."""
    text = resources.files("parfocal.workflow.guide.project").joinpath(f"{name}.txt").read_text("utf-8")
    return PROSE.sub(lambda found: said(Phrase(found[1], {})), text)


def _toy() -> dict[str, str]:
    factories = {
        f"{side}_factories": "\n".join(f'{name} = "{ADAPTERS[side]}:{name}"' for name in _TOY)
        for side in SIDES
    }
    plan = _template(FILE).format(
        **factories,
        **_framework_words(FRAMEWORKS),
        inputs=json.dumps([TOY_INPUT]),
        label=f'label = "{TOY_LABEL}"',
    )
    return {FILE: plan, **{ADAPTERS[side]: _template(ADAPTERS[side]) for side in SIDES}}


def _own(target: Path, models: tuple[str, str], inputs: Sequence[str], label: str) -> dict[str, str]:
    frameworks, factories, adapters = [], {}, {}
    for number, (side, spec) in enumerate(zip(SIDES, models, strict=True)):
        place, _, name = spec.rpartition(":")
        if not (place and name):
            raise InputError(
                phrase("--from {spec} is neither file.py:name nor package.module:name", spec=repr(spec))
            )
        if place.endswith(".py"):
            if not Path(place).is_file():
                raise InputError(phrase("--from {spec}: there is no file {place}", spec=spec, place=place))
            place = os.path.relpath(Path(place).resolve(), target.resolve())
        frameworks.append(_framework_of(spec) or FRAMEWORKS[number])
        rest = "\n".join(f'# {each} = "{ADAPTERS[side]}:{each}"' for each in _TOY if each != "model")
        factories[f"{side}_factories"] = f"model = {json.dumps(f'{place}:{name}')}\n{rest}"
        adapters[ADAPTERS[side]] = _template("own_side.py").replace("SIDE", said(side_name(side)))
    told = (
        f"label = {json.dumps(label)}"
        if label
        else f'# label = "int64[4]:0..10"   # {said(phrase("what the loss is given"))}'
    )
    plan = _template(FILE).format(
        **factories, **_framework_words(frameworks), inputs=json.dumps(list(inputs)), label=told
    )
    return {FILE: plan, **adapters}


def _framework_words(frameworks: Sequence[str]) -> dict[str, str]:
    return {f"{side}_framework": name for side, name in zip(SIDES, frameworks, strict=True)}


def _framework_of(spec: str) -> str | None:
    """The one framework that a file imports; None where that cannot be told."""
    place = spec.rpartition(":")[0]
    if not place.endswith(".py"):
        return None
    try:
        tree = ast.parse(Path(place).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return None
    roots = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            roots |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            roots.add(node.module.partition(".")[0])
    found = roots & set(registry.names())
    return found.pop() if len(found) == 1 else None
