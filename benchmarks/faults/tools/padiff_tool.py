"""PaDiff 0.2.0 with its defaults, and once more tuned: with the right weights given to it and with
the tolerances of the example in its documentation. What it names is read where it prints it."""

from __future__ import annotations

# PaDiff watches functions only when it is imported before the frameworks.
import padiff  # isort: skip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import paddle
import torch
from padiff.trainer import Checker as Checking
from padiff.trainer.trainer_utils.module_struct import LayerStack

from benchmarks.faults.cases import Models, build, set_mode
from benchmarks.faults.fault import HOME
from benchmarks.faults.scoring import DIFFERS, SAME, Answer, Blame, Case

TUNED = {"atol": 1e-4, "rtol": 0, "compare_mode": "strict"}


def ask(case: Case) -> Answer:
    return _ask(build(case, load=False), {})


def ask_tuned(case: Case) -> Answer:
    return _ask(build(case, load=True), dict(TUNED))


def _ask(models: Models, options: dict[str, Any]) -> Answer:
    set_mode(models)
    given = ({"x": paddle.to_tensor(models.inputs)}, {"x": torch.as_tensor(models.inputs)})
    log = Path("diff_log", "grad_diff.log")
    log.unlink(missing_ok=True)
    with _followed(models.port), _named(models.port) as named:
        same = padiff.auto_diff(
            models.port, models.reference, given, auto_weights=not models.loaded, options=options
        )
    if not same and not named and log.exists():
        named.extend(_parameters(log.read_text(encoding="utf-8")))
    return Answer(SAME if same else DIFFERS, tuple(named))


def _parameters(text: str) -> list[Blame]:
    """The paths of parameters whose gradients differ, without the model's name in front."""
    lines = text.splitlines()
    after = [lines[index + 1].strip() for index, each in enumerate(lines) if each == "paddle path:"]
    return [Blame(path.partition(".")[2].rpartition(".")[0]) for path in after]


@contextmanager
def _named(port: Any) -> Iterator[list[Blame]]:
    """Collects the places that PaDiff prints as different."""
    named: list[Blame] = []
    usual = Checking.print_info
    paths = {id(layer): path for path, layer in port.named_sublayers(include_self=True)}

    def print_info(paddle_item: Any, *others: Any, p_root: Any = None, **settings: Any) -> None:
        file, line = _line(paddle_item)
        if p_root is not None:
            node = p_root
            while id(node.net) not in paths and not hasattr(node, "inside") and node.father is not None:
                node = node.father
            path = paths.get(id(node.net), getattr(node, "inside", "?"))
            named.append(Blame(path, file, line))
        usual(paddle_item, *others, p_root=p_root, **settings)

    Checking.print_info = print_info
    try:
        yield named
    finally:
        Checking.print_info = usual


def _line(item: Any) -> tuple[str, int]:
    """The innermost line of the user's own code in the stack that PaDiff prints."""
    for frame in item.stacks():
        if os.path.abspath(frame.filename).startswith(str(HOME)) and "/tools/" not in frame.filename:
            return frame.filename, frame.lineno
    return "", 0


@contextmanager
def _followed(port: Any) -> Iterator[None]:
    """Notes the layer that every function is called in, as PaDiff leaves layers without weights out."""
    inside: list[str] = []
    removers = []
    for path, layer in port.named_sublayers(include_self=True):
        removers.append(layer.register_forward_pre_hook(lambda _, __, path=path: inside.append(path)))
        removers.append(layer.register_forward_post_hook(lambda *_: (inside.pop(), None)[1]))
    usual = LayerStack.push_api

    def push_api(stack: Any, api: Any, forward: Any, backward: Any) -> None:
        usual(stack, api, forward, backward)
        if stack.type == "paddle" and hasattr(api, "__api__") and inside and stack._top() is not None:
            stack._top().children[-1].inside = inside[-1]

    LayerStack.push_api = push_api
    try:
        yield
    finally:
        LayerStack.push_api = usual
        for remover in removers:
            remover.remove()
