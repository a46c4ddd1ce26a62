"""reprod_log as the reproduction guide has it: outputs, loss, and the losses of some training rounds
of both sides are logged and reported on with the default method (mean) and threshold (1e-6)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import torch
from reprod_log import ReprodDiffHelper, ReprodLogger

from benchmarks.faults.cases import Models, build, set_mode
from benchmarks.faults.scoring import DIFFERS, SAME, Answer, Case

ROUNDS = 5  # the guide wants two at least
RATE = 1e-3  # the default of reprod_log's own comparison of training
SIDES = ("torch", "paddle")


def ask(case: Case) -> Answer:
    models = build(case, load=True)
    set_mode(models)
    _log(models)
    failed = [name for name in ("forward", "loss", "bp_align") if not _passed(name)]
    return Answer(DIFFERS if failed else SAME, message=", ".join(failed))


def _log(models: Models) -> None:
    given = {"torch": torch.as_tensor(models.inputs), "paddle": paddle.to_tensor(models.inputs)}
    for side, model in zip(SIDES, (models.reference, models.port), strict=True):
        outputs = _outputs(model(given[side]))
        _save("forward", side, {f"output {index}": _array(out) for index, out in enumerate(outputs)})
        _save("loss", side, {"loss": _array(_loss(outputs))})
        rounds = _train(side, model, given[side])
        _save("bp_align", side, {f"loss {index}": value for index, value in enumerate(rounds)})


def _train(side: str, model: Any, given: Any) -> list[np.ndarray]:
    if side == "torch":
        optimizer: Any = torch.optim.SGD(model.parameters(), lr=RATE)
        clear = optimizer.zero_grad
    else:
        optimizer = paddle.optimizer.SGD(parameters=model.parameters(), learning_rate=RATE)
        clear = optimizer.clear_grad
    losses = []
    for _ in range(ROUNDS):
        loss = _loss(_outputs(model(given)))
        loss.backward()
        optimizer.step()
        clear()
        losses.append(_array(loss))
    return losses


def _outputs(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _loss(outputs: list[Any]) -> Any:
    return sum((each * each).mean() for each in outputs)


def _array(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.detach().numpy())


def _save(name: str, side: str, values: dict[str, np.ndarray]) -> None:
    logger = ReprodLogger()
    for key, value in values.items():
        logger.add(key, value)
    logger.save(f"{name}_{side}.npy")


def _passed(name: str) -> bool:
    helper = ReprodDiffHelper()
    helper.compare_info(*(helper.load_info(f"{name}_{side}.npy") for side in SIDES))
    log = Path(f"{name}_diff.log")
    helper.report(path=str(log))
    handlers = logging.getLogger("root").handlers
    for handler in list(handlers):  # every report adds handlers and none takes them away
        handlers.remove(handler)
        handler.close()
    text = log.read_text(encoding="utf-8")
    assert ("diff check passed" in text) != ("diff check failed" in text), text
    return "diff check passed" in text
