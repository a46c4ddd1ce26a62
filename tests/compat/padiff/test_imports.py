"""The names of PaDiff and PPAutoDiff, and what importing them does and does not."""

import subprocess
import sys

import pytest

from parfocal.compat.padiff import cinn_diff
from parfocal.errors import UnsupportedError
from tests.compat.apart import LOADED, WHEEL, run


def test_importing_loads_no_framework_and_changes_nothing(tmp_path):
    code = f"""
import sys
before = list(sys.meta_path)
import padiff, PPAutoDiff
assert sys.meta_path == before
{LOADED}
"""
    assert run(code, tmp_path, WHEEL / "src") == "[]\n"
    assert list(tmp_path.iterdir()) == []


def test_the_test_for_loaded_frameworks_can_fail(tmp_path):
    (tmp_path / "torch.py").write_text("")
    assert run(f"import torch; {LOADED}", tmp_path, tmp_path) == "['torch']\n"


def test_the_old_names_are_the_new_modules(tmp_path):
    code = """
import padiff, parfocal.compat.padiff as home
from padiff import *
from padiff import cinn_diff
from padiff.checker import check_grads, check_params, check_report, check_weights
from padiff.dump_tools import dump_grads, dump_params, dump_report, dump_weights
from padiff.interfaces.diff_utils import default_loss
from padiff.weight_init.special_init.special_init_pool import global_special_init_pool as init_pool
from padiff.abstracts.proxy_model import ProxyModel
from padiff.report import Report
import padiff.utils
from PPAutoDiff import autodiff
assert padiff.utils is __import__("parfocal.compat.padiff.utils", fromlist=["log"])
assert auto_diff is home.auto_diff and create_model is home.create_model
set_dump_root_path("here")
assert home.get_dump_root_path() == get_dump_root_path() == "here"
print(sorted(padiff.__all__) == sorted(home.__all__), padiff.__version__)
"""
    assert run(code, tmp_path, WHEEL / "src") == "True 0.3.0\n"


def test_dumps_are_compared_where_no_framework_is_installed(tmp_path):
    """What check_report needs is on the disk."""
    code = """
import json, os, sys
sys.modules["torch"] = sys.modules["paddle"] = None
import numpy as np
from parfocal.compat.padiff import check_report
def dump(folder, value):
    os.makedirs(f"{folder}/tensors")
    path = f"{folder}/tensors/tensor_0.npy"
    np.save(path, np.full(3, value))
    node = {"name": "Net", "route": "Net", "type": "net", "children": [], "stack": ""}
    node |= {"metas": {"fwd_step": 0, "bwd_step": 1, "net_id": 0}}
    node |= {"fwd_outputs": [{"path": path}], "bwd_grads": []}
    heading = {"model_name": "Net", "framework": "torch", "file_path": ""}
    with open(f"{folder}/report.json", "w") as file:
        json.dump({**heading, "layer_map": {"route": [], "fullname": []}, "tree": [node]}, file)
    return folder
one, same, other = dump("one", 1.0), dump("same", 1.0), dump("other", 2.0)
print("verdicts:", check_report(one, same), check_report(one, other))
"""
    assert run(code, tmp_path).endswith("verdicts: True False\n")


@pytest.mark.parametrize("script", [True, False])
def test_dumps_and_logs_lie_beside_the_script_or_in_the_working_folder(tmp_path, script):
    (tmp_path / "scripts").mkdir()
    (tmp_path / "elsewhere").mkdir()
    code = "from parfocal.compat import padiff; print(padiff.get_dump_root_path())"
    file = tmp_path / "scripts" / "compare.py"
    file.write_text(code, encoding="utf-8")
    command = [sys.executable, str(file)] if script else [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path / "elsewhere", capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path / ('scripts' if script else 'elsewhere')}/padiff_dump\n"


def test_the_compiler_comparison_says_that_it_is_not_there():
    with pytest.raises(UnsupportedError, match=r"padiff\.cinn_diff\.auto_diff is not available"):
        cinn_diff.auto_diff("base", "cinn")
