"""A correct acceptance folder as a person makes it with the old tool, to be broken in one place each."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import numpy as np

from parfocal.compat.reprod_log import ReprodDiffHelper, ReprodLogger

GENERATOR = np.random.default_rng(5)
LOGITS = GENERATOR.standard_normal((4, 10)).astype("float32")
LOSSES = (2.3025851, 2.2871094, 2.2510986, 2.2001953, 2.1484375)
REFERENCE = {
    "forward": {"logits": LOGITS},
    "metric": {"top1_acc": np.float32(0.625), "mean_class_accuracy": np.float32(0.6041667)},
    "loss": {"loss": np.float32(2.3025851)},
    "bp_align": {f"loss_{step}": np.float32(loss) for step, loss in enumerate(LOSSES)},
    "train_align": {"top1_acc": np.float32(0.633)},
}
PORT = {
    **REFERENCE,
    "forward": {"logits": np.nextafter(LOGITS, np.float32(9), dtype="float32")},
    "train_align": {"top1_acc": np.float32(0.6325)},
}


def write_values(path: Path, values: dict) -> None:
    logger = ReprodLogger()
    for key, value in values.items():
        logger.add(key, np.asarray(value))
    logger.save(str(path))


def write_checkpoint(
    folder: Path, name: str, reference: dict, port: dict, *, steps_spelling=False, within=1.5e-3
) -> None:
    """Both files and the log of their difference, in one of the guide's two spellings."""
    side = "benchmark" if name == "train_align" else "pytorch" if steps_spelling else "torch"
    files = folder / f"{name}_{side}.npy", folder / f"{name}_paddle.npy"
    log = folder / f"{name}_diff{'_log.txt' if steps_spelling else '.log'}"
    write_values(files[0], reference)
    write_values(files[1], port)
    helper = ReprodDiffHelper()
    helper.compare_info(helper.load_info(files[1]), helper.load_info(files[0]))
    after_training = within * (100 if max(map(np.max, reference.values())) > 1 else 1)
    with contextlib.redirect_stdout(io.StringIO()):
        helper.report(path=str(log), diff_threshold=after_training if name == "train_align" else 1e-6)


def write_folder(folder: Path, *, steps_spelling=False, reference=None, port=None) -> Path:
    """All five checkpoints; ``reference`` and ``port`` replace those of their names."""
    folder.mkdir(parents=True)
    references, ports = {**REFERENCE, **(reference or {})}, {**PORT, **(port or {})}
    for name in references:
        write_checkpoint(folder, name, references[name], ports[name], steps_spelling=steps_spelling)
    return folder
