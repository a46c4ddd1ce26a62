"""Dumps and logs go to the test's own folder; paddle is imported where its warning is expected."""

import warnings

import pytest

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="No ccache found", category=UserWarning)
    import paddle

import torch

from parfocal.compat import padiff
from parfocal.compat.padiff import utils


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    before = padiff.get_dump_root_path()
    padiff.set_dump_root_path(tmp_path / "padiff_dump")
    monkeypatch.setattr(utils, "log_path", str(tmp_path / "padiff_log"))
    for name in ("PADIFF_API_CHECK", "PADIFF_PATH_LOG", "PADIFF_SIKP_WRAP_LAYER", "PADDLE_THIRDPARTY_API"):
        monkeypatch.delenv(name, raising=False)
    torch.manual_seed(0)
    paddle.seed(0)
    yield tmp_path
    padiff.set_dump_root_path(before)


@pytest.fixture
def logs(tmp_path):
    return tmp_path / "padiff_log"
