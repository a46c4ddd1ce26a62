"""Checkpoints of torch's format before 1.6 with damage in them: read, or refused in one clear error."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from parfocal.backends import registry
from parfocal.errors import ParfocalError


def damaged(raw: bytes, seed: int) -> bytes:
    """Bytes changed, taken out, or the end cut off."""
    draw, data = random.Random(seed), bytearray(raw)
    for _ in range(draw.choice((1, 1, 2, 4))):
        at, how = draw.randrange(len(data)), draw.random()
        if how < 0.6:
            data[at] = draw.randrange(256)
        elif how < 0.8:
            del data[at : at + draw.randrange(1, 9)]
        else:
            del data[max(1, at) :]
    return bytes(data)


@pytest.mark.filterwarnings("ignore")
def test_damaged_files_of_the_old_format_are_read_or_refused(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.BatchNorm1d(6))
    path = tmp_path / "old.pth"
    torch.save(model.state_dict(), path, _use_new_zipfile_serialization=False)
    raw, backend = path.read_bytes(), registry.of(model)
    refusals = []
    for seed in range(400):
        path.write_bytes(damaged(raw, seed))
        try:
            backend.load_checkpoint(str(path))
        except ParfocalError as error:
            refusals.append(error.message)
    assert len(refusals) > 200
    assert all(str(path) in each for each in refusals)
