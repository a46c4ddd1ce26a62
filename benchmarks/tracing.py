"""The way of one tensor: how many files, calls and classes lie between a wrong layer and its printed cause.

``python -m benchmarks.tracing`` aligns a model whose LayerNorm has a wrong epsilon and follows the layer's
output. It is followed as an array or tensor of these values (either side's, in any precision), as the
measure of it and as the divergence made of that. Counted are:

- hops: calls from a function of one file of parfocal to one of another in which it is an argument or the
  result (reading a property of the measure is such a call);
- files: those of the functions that are called so;
- classes: parfocal's own classes among the arguments and results of these calls, ``self`` included.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

PATH = "1"  # of the LayerNorm in both models
CALL = 2  # its order in the run: the model, the first Linear, the norm


class Tracer:
    """Hears of every call while it is open, and keeps those on the tensor's way."""

    def __init__(self, expected: np.ndarray[Any, Any], house: Path) -> None:
        self.expected = expected
        self.house = str(house)
        self.hops: Counter[tuple[str, str]] = Counter()  # from a file to a function of another
        self.files: dict[str, None] = {}
        self.classes: dict[str, None] = {}
        self._counted: set[int] = set()  # frames whose call is a hop already
        self._files: dict[str, str | None] = {}

    def __enter__(self) -> Tracer:
        sys.setprofile(self._heard)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    def _heard(self, frame: FrameType, event: str, result: Any) -> None:
        if event not in ("call", "return"):
            return
        own = self._file(frame)
        if own is None:
            return
        caller = frame.f_back
        while caller is not None and self._file(caller) is None:  # a framework calls back
            caller = caller.f_back
        other = None if caller is None else self._file(caller)
        if other is None or other == own:
            return
        code = frame.f_code
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        given = [frame.f_locals[name] for name in names if name in frame.f_locals]
        looked_at = given if event == "call" else [result]
        if any(map(self._is_it, looked_at)):
            if id(frame) not in self._counted:
                self.hops[other, f"{own}:{code.co_name}"] += 1
                self._counted.add(id(frame))
            self.files.setdefault(own)
            for each in (*given, result):
                kind = type(each)
                if kind.__module__.startswith("parfocal."):
                    self.classes.setdefault(f"{kind.__module__}.{kind.__qualname__}")
        if event == "return":
            self._counted.discard(id(frame))

    def _file(self, frame: FrameType) -> str | None:
        name = frame.f_code.co_filename
        if name not in self._files:
            inside = name.startswith(self.house)
            self._files[name] = name[len(self.house) + 1 :] if inside else None
        return self._files[name]

    def _is_it(self, value: Any) -> bool:
        kind = type(value)
        if kind.__name__ == "Divergence":
            return value.phase == "forward" and value.port is not None and value.port.path == PATH
        if {"port", "reference", "side", "slot", "direction"} <= set(dir(kind)):  # a measure
            place = getattr(value, "port", None), getattr(value, "side", None), value.direction
            return place == (CALL, "output", "forward")
        framework = kind.__module__.partition(".")[0] in ("torch", "paddle") and kind.__name__ == "Tensor"
        if not (framework or isinstance(value, np.ndarray)) or tuple(value.shape) != self.expected.shape:
            return False
        array = value.detach().numpy() if framework else value
        return np.allclose(array.astype(np.float64), self.expected, rtol=1e-3, atol=1e-4)


def traced() -> Tracer:
    """The way of the output of a LayerNorm with epsilon 1e-6 for 1e-5, from ``align`` to the text."""
    import paddle
    import torch

    import parfocal

    torch.manual_seed(0)
    reference = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4))
    port = paddle.nn.Sequential(
        paddle.nn.Linear(16, 32), paddle.nn.LayerNorm(32, epsilon=1e-6), paddle.nn.Linear(32, 4)
    )
    x = np.random.default_rng(0).standard_normal((8, 16)).astype("float32")
    expected = reference[:2](torch.from_numpy(x)).detach().numpy().astype(np.float64)
    str(parfocal.align(reference, port, x))  # what is imported or built on first use is no part of the way
    with Tracer(expected, Path(parfocal.__file__).parent) as tracer:
        report = parfocal.align(reference, port, x)
        text = str(report)
    assert report.first is not None
    assert report.first.cause is not None
    assert report.first.cause.code == "config.epsilon"
    assert "epsilon" in text
    return tracer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--list", action="store_true", help="also every file, hop and class")
    arguments = parser.parse_args()
    tracer = traced()
    print(f"{len(tracer.files)} files, {tracer.hops.total()} hops, {len(tracer.classes)} classes")
    if arguments.list:
        for name in tracer.files:
            print(f"  {name}")
        for (source, target), count in tracer.hops.most_common():
            print(f"  {count:4d}  {source} -> {target}")
        for name in tracer.classes:
            print(f"  {name}")


if __name__ == "__main__":
    main()
