"""The report: its lines to the character, its verdict, its file."""

import logging
import re
import sys

import numpy as np
import pytest

from parfocal.compat.reprod_log import ReprodDiffHelper
from parfocal.errors import EmptyComparisonError, InputError, StorageError
from parfocal.workflow.acceptance.logs import read_log
from tests.compat.reprod_log import golden

STAMP = re.compile(r"^\[\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\] root INFO: ", re.MULTILINE)


def compared(info1, info2):
    helper = ReprodDiffHelper()
    helper.compare_info(info1, info2)
    return helper


def lines_of(text):
    """The original's lines without their time stamps; every line must have one."""
    assert len(STAMP.findall(text)) == len(text.splitlines())
    return STAMP.sub("", text)


def report_lines(info1, info2, capsys, **options):
    capsys.readouterr()
    passed = compared(info1, info2).report(path=None, **options)
    return passed, lines_of(capsys.readouterr().out).splitlines()


def test_the_documented_example_to_the_character(tmp_path, capsys):
    path = tmp_path / "forward_diff.log"
    passed = compared({"logits": np.array([1.0])}, {"logits": np.array([1.0])}).report(path=str(path))
    printed = capsys.readouterr().out
    assert passed is True
    stamp = r"\[\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\]"
    assert re.fullmatch(
        f"{stamp} root INFO: logits: \n"
        f"{stamp} root INFO: \tmean diff: check passed: True, value: 0.0\n"
        f"{stamp} root INFO: diff check passed\n",
        printed,
    )
    assert path.read_text() == printed


def test_the_lines_of_the_guides_document_on_request(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PARFOCAL_REPROD_LOG_LINES", "guide")
    path = tmp_path / "forward_diff.log"
    values = {"demo_test_1": np.zeros(2)}
    assert compared(values, values).report(path=path) is True
    stamp = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} - reprod_log.utils - INFO - "
    assert re.fullmatch(
        f"{stamp}demo_test_1: \n"
        f"{stamp}\tmean diff: check passed: True, value: 0.0\n"
        f"{stamp}diff check passed\n",
        path.read_text(),
    )
    assert capsys.readouterr().out == path.read_text()
    told = read_log(path)
    assert told.passed is True
    assert told.means == {"demo_test_1": 0.0}
    monkeypatch.setenv("PARFOCAL_REPROD_LOG_LINES", "2.0")
    with pytest.raises(InputError, match=r"PARFOCAL_REPROD_LOG_LINES is '2.0'"):
        compared(values, values).report(path=path)


def test_the_originals_lines_for_the_originals_files(capsys):
    helper = ReprodDiffHelper()
    helper.compare_info(helper.load_info(golden.TORCH), helper.load_info(golden.PADDLE))
    assert helper.report(path=None) is False
    assert lines_of(capsys.readouterr().out) == golden.MEAN


def test_all_prints_min_max_mean_and_each_has_its_own_verdict(capsys):
    helper = ReprodDiffHelper()
    helper.compare_info(helper.load_info(golden.TORCH), helper.load_info(golden.PADDLE))
    assert helper.report(diff_method="all", path=None) is False
    assert golden.ALL.count(golden.SPOILED) == 1
    expected = golden.ALL.replace(golden.SPOILED, golden.SPOILED.replace("False", "True"))
    assert lines_of(capsys.readouterr().out) == expected


def test_a_list_of_methods_in_the_order_given(capsys):
    passed, lines = report_lines({"x": np.zeros(4)}, {"x": np.eye(4)[0]}, capsys, diff_method=["max", "min"])
    assert passed is False
    assert lines == [
        "x: ",
        "\tmax diff: check passed: False, value: 1.0",
        "\tmin diff: check passed: True, value: 0.0",
        "diff check failed",
    ]


@pytest.mark.parametrize("method", ["median", [], ["mean", "sum"], ""])
def test_an_unknown_method_is_refused_before_anything_is_written(method, tmp_path):
    path = tmp_path / "diff.txt"
    with pytest.raises(InputError, match="known are min, max, mean, all"):
        compared({"x": np.zeros(1)}, {"x": np.zeros(1)}).report(diff_method=method, path=path)
    assert not path.exists()


@pytest.mark.parametrize("threshold", ["1e-6", None, True])
def test_a_threshold_that_is_no_number_is_refused_before_anything_is_written(threshold, tmp_path):
    path = tmp_path / "diff.txt"
    with pytest.raises(InputError, match=r"diff_threshold is .*, not a number"):
        compared({"x": np.zeros(1)}, {"x": np.zeros(1)}).report(diff_threshold=threshold, path=path)
    assert not path.exists()


def test_a_value_equal_to_the_threshold_passes_and_the_next_one_does_not():
    helper = compared({"x": np.array([0.0])}, {"x": np.array([0.5])})
    assert helper.report(diff_threshold=0.5, path=None) is True
    assert helper.report(diff_threshold=float(np.nextafter(0.5, 0.0)), path=None) is False


def test_nan_never_passes_on_one_side_or_both(capsys):
    nan, one = np.array([1.0, np.nan]), np.array([1.0, 1.0])
    for first, second in [(nan, one), (one, nan), (nan, nan.copy())]:
        passed, lines = report_lines(
            {"x": first}, {"x": second}, capsys, diff_method="all", diff_threshold=1e9
        )
        assert passed is False
        assert "\tmean diff: check passed: False, value: nan" in lines
        assert not any("True" in line for line in lines)


def test_infinite_differences_fail_and_equal_infinities_are_equal():
    inf = np.array([np.inf, -np.inf])
    assert compared({"x": inf}, {"x": -inf}).report(path=None) is False
    assert compared({"x": inf}, {"x": np.zeros(2)}).report(path=None) is False
    assert compared({"x": inf}, {"x": inf.copy()}).report(path=None) is True


@pytest.mark.parametrize(
    ("dtype", "first", "second", "distance"),
    [
        ("uint8", 0, 255, 255),
        ("int8", -128, 0, 128),
        ("int8", -128, 127, 255),
        ("int64", -(2**63), 2**63 - 1, 2**64 - 1),
        ("uint64", 0, 2**64 - 1, 2**64 - 1),
        ("bool", False, True, 1),
    ],
)
def test_integers_do_not_wrap_around(dtype, first, second, distance, capsys):
    info1, info2 = {"x": np.array([first], dtype)}, {"x": np.array([second], dtype)}
    for pair in [(info1, info2), (info2, info1)]:
        passed, lines = report_lines(*pair, capsys, diff_method="max", diff_threshold=distance - 1)
        assert lines[1] == f"\tmax diff: check passed: False, value: {distance}"
        assert passed is False


def test_float16_neither_overflows_nor_vanishes(capsys):
    far = np.array([-6e4, -6e4], np.float16)
    _, lines = report_lines({"x": far}, {"x": -far}, capsys)
    assert lines[1] == "\tmean diff: check passed: False, value: 120000.0"
    tiny = np.zeros(1000, np.float16)
    tiny[0] = 2.0**-24
    passed, _ = report_lines({"x": np.zeros(1000, np.float16)}, {"x": tiny}, capsys, diff_threshold=0.0)
    assert passed is False


@pytest.mark.parametrize(
    ("first", "second"),
    [((90, 1), (1, 90, 2)), ((3, 4), (4, 3)), ((), (2,)), ((2, 3), (3,)), ((2, 6), (12,))],
)
def test_shapes_must_agree(first, second, capsys):
    passed, lines = report_lines(
        {"x": np.zeros(first), "y": np.zeros(2)}, {"x": np.zeros(second), "y": np.zeros(2)}, capsys
    )
    assert passed is False
    assert lines[1] == f"\tshapes differ: {first} against {second}"
    assert lines[2:] == [
        "\tmean diff: check passed: False, value: nan",
        "y: ",
        "\tmean diff: check passed: True, value: 0.0",
        "diff check failed",
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [((), (1,)), ((90,), (90, 1)), ((1, 90), (90, 1)), ((2, 1, 3), (1, 2, 3, 1)), ((0, 1), (0,))],
)
def test_axes_of_length_1_are_told_and_nothing_is_broadcast(first, second, capsys):
    values = np.random.default_rng(0).standard_normal(first)
    other = values.reshape(second)
    note = f"\tshapes {first} and {second} differ by axes of length 1 only: compared by value"
    passed, lines = report_lines({"x": values}, {"x": other}, capsys)
    if not values.size:
        assert not passed
        return
    assert passed is True
    assert lines == ["x: ", note, "\tmean diff: check passed: True, value: 0.0", "diff check passed"]
    moved = other.copy()
    moved.flat[0] += 1
    passed, lines = report_lines({"x": values}, {"x": moved}, capsys, diff_method="max", diff_threshold=0.5)
    assert passed is False  # broadcast, (90,) - (90, 1) would hold the difference of any two values
    assert lines[1] == note
    assert float(lines[2].rpartition(" ")[2]) == pytest.approx(1.0)


def test_a_failing_report_can_end_the_process(tmp_path, capsys):
    helper = compared({"x": np.zeros(2)}, {"x": np.ones(2)})
    with pytest.raises(SystemExit) as stopped:
        helper.report(path=tmp_path / "diff.txt", exit_on_failure=True)
    assert stopped.value.code == 1
    assert lines_of((tmp_path / "diff.txt").read_text()).endswith("diff check failed\n")
    assert compared({"x": np.ones(2)}, {"x": np.ones(2)}).report(path=None, exit_on_failure=True) is True
    assert helper.report(path=None) is False


def own_line(info1, info2, capsys, **options):
    """parfocal's own line, on standard error."""
    capsys.readouterr()
    compared(info1, info2).report(path=None, **options)
    printed, own = capsys.readouterr()
    assert "parfocal: " not in printed
    assert own.count("\n") <= 1
    return own.strip()


def rounded(values, units):
    """Values moved by so many units in the last place of their own size."""
    size = np.abs(values).max()
    return (values + size * np.finfo(values.dtype).eps * units).astype(values.dtype)


def test_a_failure_within_rounding_is_told(capsys):
    values = np.full(64, 1000, np.float32)
    line = own_line({"x": values}, {"x": rounded(values, 1)}, capsys)
    assert line == "parfocal: within rounding (1.0 of the noise)"
    both = {"x": values, "y": values, "same": values}
    other = {"x": rounded(values, 1), "y": rounded(values, 2), "same": values}
    assert own_line(both, other, capsys) == "parfocal: all 2 within rounding (2.0 of the noise)"


def test_a_failure_beyond_rounding_is_told_with_its_size(capsys):
    values = np.full(64, 1000, np.float32)
    nested = {"n": {"x": values, "y": values}}, {"n": {"x": rounded(values, 1), "y": rounded(values, 3000)}}
    assert own_line(*nested, capsys) == (
        "parfocal: n.y: 3,000 times the rounding of values of this size; "
        "1 of the 2 values that failed are within rounding"
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.array([1, 2]), np.array([1, 3])),  # exact numbers are not rounded
        (np.array([1.0, np.nan]), np.array([1.0, np.nan])),
        (np.array([1.0, np.inf]), np.array([1.0, 2.0])),
        (np.zeros((2, 3)), np.zeros((3, 2))),
    ],
)
def test_nothing_is_said_of_what_rounding_cannot_judge(first, second, capsys):
    assert own_line({"x": first}, {"x": second}, capsys) == ""


def test_nothing_is_said_where_all_passes_or_nobody_wants_it(capsys, monkeypatch):
    values = np.full(64, 1000, np.float32)
    assert own_line({"x": values}, {"x": rounded(values, 1)}, capsys, diff_threshold=1.0) == ""
    monkeypatch.setenv("PARFOCAL_OPINION", "OFF")
    assert own_line({"x": values}, {"x": rounded(values, 1)}, capsys) == ""


def test_missing_and_extra_keys_are_named_and_the_others_are_told(capsys, tmp_path):
    one = np.ones(2)
    info1 = {"both": one, "only1": one, "nest": {"both": one, "inner1": one}}
    info2 = {"both": one, "nest": {"both": one, "inner2": {"deep": one}}, "only2": one}
    passed = compared(info1, info2).report(path=tmp_path / "diff.txt")
    lines = lines_of(capsys.readouterr().out).splitlines()
    assert passed is False
    assert lines == [
        "both: ",
        "\tmean diff: check passed: True, value: 0.0",
        "only1: ",
        "\tonly1 in info1 but not found in info2",
        "\tmean diff: check passed: False, value: nan",
        "nest",
        "\tboth: ",
        "\t\tmean diff: check passed: True, value: 0.0",
        "\tinner1: ",
        "\t\tinner1 in info1 but not found in info2",
        "\t\tmean diff: check passed: False, value: nan",
        "\tinner2: ",
        "\t\tinner2 in info2 but not found in info1",
        "\t\tmean diff: check passed: False, value: nan",
        "only2: ",
        "\tonly2 in info2 but not found in info1",
        "\tmean diff: check passed: False, value: nan",
        "diff check failed",
    ]
    assert lines_of((tmp_path / "diff.txt").read_text()).splitlines() == lines


def test_a_dict_against_an_array_fails_by_name(capsys):
    passed, lines = report_lines({"x": {"y": np.ones(1)}}, {"x": np.ones(1)}, capsys)
    assert passed is False
    assert lines[1] == "\tx is a dict in info1 but not in info2"


def test_what_holds_no_numbers_fails_by_name(capsys):
    passed, lines = report_lines({"x": "text", "y": 1.0}, {"x": "text", "y": 1}, capsys)
    assert passed is False
    assert lines[1] == "\t'x' is a str, which holds no numbers"
    assert lines[4] == "\tmean diff: check passed: True, value: 0.0"


@pytest.mark.parametrize("empty", [{}, {"nest": {}}, {"x": np.zeros((0, 3))}])
def test_comparing_nothing_fails(empty):
    assert compared(empty, empty).report(path=None) is False
    assert compared({"x": np.ones(1)}, {"x": np.ones(1)}).report(path=None) is True


def test_keys_called_like_the_methods_are_a_nesting_like_any_other(capsys):
    info = {"stats": {"mean": np.ones(1), "max": np.ones(1), "min": np.ones(1)}}
    passed, lines = report_lines(info, info, capsys)
    assert passed is True
    assert lines[:3] == ["stats", "\tmean: ", "\t\tmean diff: check passed: True, value: 0.0"]


def test_report_without_a_comparison_says_what_to_call():
    with pytest.raises(EmptyComparisonError, match="compare_info"):
        ReprodDiffHelper().report(path=None)


def test_a_second_report_prints_once_and_leaves_the_first_ones_file(tmp_path, capsys):
    first, second = tmp_path / "first.log", tmp_path / "deeper" / "second.log"
    compared({"a": np.ones(1)}, {"a": np.ones(1)}).report(path=first)
    written = first.read_text()
    capsys.readouterr()
    compared({"b": np.ones(1)}, {"b": np.ones(1)}).report(path=second)
    printed = capsys.readouterr().out
    assert lines_of(printed).splitlines()[0] == "b: "
    assert printed.count("diff check passed") == 1
    assert second.read_text() == printed
    assert first.read_text() == written


def test_a_handler_on_the_root_logger_does_not_print_the_lines_again(capsys):
    handler = logging.StreamHandler(sys.stdout)
    logging.getLogger().addHandler(handler)
    try:
        compared({"a": np.ones(1)}, {"a": np.ones(1)}).report(path=None)
    finally:
        logging.getLogger().removeHandler(handler)
    assert capsys.readouterr().out.count("diff check passed") == 1


def test_reporting_leaves_logging_as_it_was(tmp_path):
    root = logging.getLogger()
    before = (list(root.handlers), root.level, set(logging.Logger.manager.loggerDict))
    helper = compared({"a": np.ones(1)}, {"a": np.ones(1)})
    helper.report(path=tmp_path / "a.log")
    with pytest.raises(StorageError):
        helper.report(path=tmp_path)
    assert (list(root.handlers), root.level, set(logging.Logger.manager.loggerDict)) == before


def test_the_default_file_is_diff_txt_and_none_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    helper = compared({"a": np.ones(1)}, {"a": np.ones(1)})
    helper.report(path=None)
    assert list(tmp_path.iterdir()) == []
    helper.report()
    assert [path.name for path in tmp_path.iterdir()] == ["diff.txt"]


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"cannot write .*file/diff\.txt: "):
        compared({"a": np.ones(1)}, {"a": np.ones(1)}).report(path=tmp_path / "file" / "diff.txt")


def test_compare_info_wants_dicts():
    with pytest.raises(InputError, match="info2 is a list, not a dict of arrays by key"):
        ReprodDiffHelper().compare_info({}, [])
