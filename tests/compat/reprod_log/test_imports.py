"""Importing and using the package needs no framework, under either name."""

import re
from pathlib import Path

from tests.compat.apart import LOADED, WHEEL, run

REPOSITORY = Path(__file__).parents[3]
BLOCKED = """
from importlib.machinery import PathFinder
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name in ("torch", "paddle") else find(name, *rest)
"""
USE = """
import numpy as np
from {package} import ReprodDiffHelper, ReprodLogger
logger = ReprodLogger()
logger.add("logits", np.ones(3))
logger.save("one")
helper = ReprodDiffHelper()
helper.compare_info(helper.load_info("one"), helper.load_info("one.npy"))
print(helper.report(path="diff.log"))
"""


def test_importing_loads_no_framework(tmp_path):
    names = "parfocal.compat.reprod_log, parfocal.compat.reprod_log.compare, parfocal.compat.reprod_log.utils"
    assert run(f"import {names}; {LOADED}", tmp_path) == "[]\n"


def test_the_test_for_loaded_frameworks_can_fail(tmp_path):
    (tmp_path / "torch.py").write_text("")
    assert run(f"import torch; {LOADED}", tmp_path, tmp_path) == "['torch']\n"


def test_logs_are_written_and_compared_where_no_framework_is_installed(tmp_path):
    printed = run(BLOCKED + USE.format(package="parfocal.compat.reprod_log"), tmp_path)
    assert printed.endswith("root INFO: diff check passed\nTrue\n")


def test_comparing_models_without_the_framework_says_what_to_install(tmp_path):
    code = BLOCKED + (
        "from parfocal.compat.reprod_log.utils import np2torch\n"
        "from parfocal.errors import MissingFrameworkError\n"
        "try: np2torch({})\n"
        "except MissingFrameworkError as error: print(error.message)\n"
    )
    assert "PyTorch is not installed" in run(code, tmp_path)


def test_the_old_top_level_name_works_like_the_originals(tmp_path):
    code = f"""
import reprod_log.utils
import reprod_log
from reprod_log import ReprodLogger, ReprodDiffHelper, compare, utils
from reprod_log.compare import check_data, compare_forward, compare_loss_and_backward, compute_diff
from reprod_log.utils import check_print_diff, init_logger, np2paddle, np2torch, paddle2np, torch2np
from reprod_log.ReprodLogger import ReprodLogger as OneLogger
from reprod_log.ReprodDiffHelper import ReprodDiffHelper as OneHelper
import parfocal.compat.reprod_log as home
assert reprod_log.ReprodLogger is ReprodLogger is OneLogger is home.ReprodLogger
assert reprod_log.ReprodDiffHelper is ReprodDiffHelper is OneHelper is home.ReprodDiffHelper
assert reprod_log.compare.compare_forward is home.compare.compare_forward
assert reprod_log.utils.init_logger is home.utils.init_logger
{LOADED}
"""
    assert run(code, tmp_path, WHEEL / "src") == "[]\n"
    assert run(USE.format(package="reprod_log"), tmp_path, WHEEL / "src").endswith("True\n")


def test_the_second_wheel_needs_the_first_in_its_own_version():
    main, compat = ((folder / "pyproject.toml").read_text(encoding="utf-8") for folder in (REPOSITORY, WHEEL))
    version = re.search(r'^version = "(.+)"$', main, re.MULTILINE).group(1)
    assert f'\nversion = "{version}"\n' in compat
    assert f'dependencies = ["parfocal=={version}"]' in compat


def test_the_first_wheel_does_not_own_the_old_names():
    assert not {"reprod_log", "padiff"} & {path.name for path in (REPOSITORY / "src").iterdir()}
