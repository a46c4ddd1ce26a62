"""The text of a report: whole texts pinned, one screen, honest about what was not compared."""

from __future__ import annotations

import dataclasses
import io
import math

import pytest

from parfocal.errors import EmptyComparisonError
from parfocal.judge.tolerance import Tolerance
from parfocal.judge.verdict import Grounds, InheritanceReason, SettingDifference
from parfocal.phrases import phrase
from parfocal.report.coverage import Compared, Coverage, LeftOut, Reason
from parfocal.report.report import DepthPoint
from parfocal.report.text import WIDTH, render
from parfocal.report.wording import REASONS
from tests.unit.report.reports import CAUSE, COVERAGE, NOTE, divergence, report, site

SAME = """\
SAME: Net (paddle 3.3.1) against Net (torch 2.13.0)

drift      ▂▂▂▂ up to 1.0e-07
compared   4 of 4 calls (100%), 20 tensors, 6 parameter gradients, forward and
           backward
           largest own error 1.25x the noise, allowed 4x
note: 2 counters of the reference left out
next: nothing to mend here"""

DIFFERENT = """\
DIFFERENT: Net (paddle 3.3.1) against Net (torch 2.13.0)

first divergence: forward, blocks.1.norm: output 0, 123x the noise
  reference  blocks.1.norm  LayerNorm  models/net.py:12
  port       blocks.1.norm  LayerNorm  models/net.py:34
  settings   epsilon: 1e-05 in the reference, 1e-06 in the port
  error      float32 2x4: rms 0.0884, relative 0.135, noise 1e-07
  worst      0.25 at [1, 2]: reference 0.714285731, port 0.964285731

also: backward, d: output 0, 7x the noise
inherited: 1 further difference follows from these
drift      ▂▂▂▂ up to 1.0e-07
made here    ^^
compared   4 of 4 calls (100%), 20 tensors, 6 parameter gradients, forward and
           backward
           largest own error 100x the noise, allowed 4x
next: look at models/net.py:34, mend it, then align again"""


def test_the_whole_text_when_all_is_well():
    assert str(report(findings=(NOTE,))) == SAME


def test_the_whole_text_when_it_is_not():
    other = divergence("d", score=7.0, phase="backward")
    inherited = divergence("e", score=9.0, inherited=True)
    assert str(report(divergence(), other, inherited)) == DIFFERENT


def lines_of(*divergences, **changes):
    return str(report(*divergences, **changes)).splitlines()


def test_a_cause_is_told_with_its_fix_as_the_next_step():
    lines = lines_of(divergence(cause=CAUSE))
    assert "  cause      epsilon is 1e-05 in the reference, 1e-06 in the port" in lines
    assert "  fix        port.blocks[1].norm = paddle.nn.LayerNorm(8, epsilon=1e-05)" in lines
    assert lines[-1] == "next: make the fix above, then align again"


def test_a_line_of_code_is_not_broken():
    code = "x = F.softmax(" + ", ".join(f"argument_{index}" for index in range(12)) + ")  # model.py:12"
    cause = dataclasses.replace(CAUSE, fix=code, message="because " * 20)
    lines = lines_of(divergence(cause=cause))
    assert f"  fix        {code}" in lines
    assert max(map(len, (line for line in lines if code not in line))) <= 80


def test_weights_first():
    first = divergence("fc.weight", phase="weights", error=None, score=math.inf, what="fc.weight [3] is new")
    lines = lines_of(first)
    assert lines[2] == "first divergence: weights, fc.weight: fc.weight [3] is new"
    assert lines[-2:] == [
        "next: make the weights correspond (see the plan: report.transfer), then align",
        "    again",
    ]


def test_an_infinite_score_is_not_printed_as_a_number():
    text = str(report(divergence(score=math.inf, message="shape [2] in the port, [3] in the reference")))
    assert "inf" not in text.replace("SAME", "")
    assert "  shape [2] in the port, [3] in the reference" in text


def test_large_scores_are_short():
    assert "1.2e+06x the noise" in str(report(divergence(score=1234567.0)))


def test_values_that_are_not_finite_are_counted():
    import numpy as np

    from parfocal.judge.metrics import compare_arrays

    error = compare_arrays(np.array([1.0, np.nan]), np.array([1.0, 2.0]))
    text = str(report(divergence(error=error)))
    assert "  not finite on one side only: 1 element" in text
    assert "reference 2, port nan" in text


def test_with_a_fixed_tolerance_there_is_no_talk_of_noise():
    text = str(report(divergence(), tolerance=Tolerance(rtol=1e-3, atol=1e-4)))
    assert "noise" not in text
    assert "1 of 8 values beyond rtol=0.001, atol=0.0001" in " ".join(text.split())


def test_what_has_no_partner_is_said():
    sites = (*(site(f"x.{n}", "Dropout") for n in range(3)), site("y", "Identity"))
    text = str(report(unpaired_port=sites, unpaired_reference=sites[:1]))
    assert (
        "           unpaired in the port: 3 Dropout, 1 Identity; judged with the code\n"
        "           around them\n"
    ) in text
    assert "unpaired in the reference: 1 Dropout" in text


@pytest.mark.parametrize("count", [0, 1, 2, 74, 75, 1000])
def test_the_drift_fits_whatever_the_depth(count):
    steps = tuple(DepthPoint(f"layer{n}", 1.0, 10.0 ** (-9 + 9 * n / max(1, count))) for n in range(count))
    lines = lines_of(along=steps)
    drift = [line for line in lines if line.startswith("drift")]
    assert len(drift) == (count >= 2)
    assert all(len(line) <= 80 for line in lines)


def test_the_mark_stands_under_the_layer_that_made_it():
    steps = tuple(
        DepthPoint(f"layer{n}", 50.0 if n == 2 else 1.0, 1e-3 if n >= 2 else 1e-7) for n in range(6)
    )
    lines = lines_of(divergence(), along=steps)
    bar = next(line for line in lines if line.startswith("drift"))
    mark = next(line for line in lines if line.startswith("made here"))
    assert mark.index("^") == 11 + 2
    assert bar[11:13] != bar[13:15]


def test_it_fits_a_screen_however_much_there_is_to_say():
    long = "a.very.long.path.to.some.module." * 4
    many = [divergence(f"{long}{n}", message="words " * 40, inherited=n > 20, cause=None) for n in range(40)]
    first = dataclasses.replace(
        many[0], cause=dataclasses.replace(CAUSE, message="because " * 60, fix="x = 1; " * 50)
    )
    sites = tuple(site(f"{long}{n}", f"Kind{n}") for n in range(30))
    notes = tuple(dataclasses.replace(NOTE, message="note " * 50) for _ in range(20))
    text = str(report(first, *many[1:], findings=notes, unpaired_port=sites, unpaired_reference=sites))
    lines = text.splitlines()
    assert max(len(line) for line in lines if not line.startswith("  fix")) <= 80
    assert len(lines) == 60  # with every text absurdly long
    assert lines[-1].startswith("next: ")
    assert any(line.startswith("note: ") for line in lines)
    everything = report(first, *many[1:], findings=notes).text(verbose=True)
    assert everything.count("also: ") == 20
    assert everything.count("note: ") == 20
    assert "more lines" not in everything


def test_an_ordinary_report_takes_forty_lines_at_most():
    many = [divergence(f"blocks.{n}.norm", inherited=n > 8) for n in range(40)]
    lines = lines_of(*many, findings=(NOTE,) * 9, unpaired_port=(site("x"),) * 9)
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80


def test_a_good_verdict_on_nothing_is_an_error_that_says_what_was_left_out():
    left = LeftOut("rank 1", Reason.MISSING)
    with pytest.raises(EmptyComparisonError, match=r"nothing of .* was compared .*: rank 1 \(missing\)"):
        report(coverage=Coverage((Compared("calls", 0, 0),), (left,)), pairs=(), along=())


def test_a_difference_stands_where_nothing_else_was_compared():
    text = str(report(divergence(), coverage=Coverage(), pairs=(), along=()))
    assert "compared   nothing" in text


def test_what_was_not_compared_is_told_with_the_reason():
    left = (
        LeftOut("optimizer state", Reason.ONLY_REFERENCE),
        LeftOut("gradients", Reason.NO_VALUES, "none on either side", ("a", "b", "c", "d", "e")),
    )
    coverage = Coverage((Compared("learning rates", 1, 1), Compared("losses", 3, 4)), left)
    lines = lines_of(coverage=coverage)
    assert "compared   1 of 1 learning rate (100%), 3 of 4 losses (75%)" in lines
    assert " ".join(" ".join(lines).split()).count(
        "not compared optimizer state (only the reference has it), gradients of a, b, c and 2 more "
        "(none on either side)"
    ) == 1  # fmt: skip


def test_a_divergence_without_any_place():
    lines = lines_of(divergence(reference=None, port=None))
    assert lines[2].startswith("first divergence: forward, the model: output 0")
    assert lines[-1] == "next: look at the place named above, mend it, then align again"


def test_files_are_shown_from_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    inside = dataclasses.replace(site("a"), file=str(tmp_path / "models" / "net.py"))
    outside = dataclasses.replace(site("a"), file="/somewhere/else/far/net.py")
    text = str(report(divergence(port=inside, reference=outside)))
    assert "a  LayerNorm  models/net.py:12" in text
    assert "a  LayerNorm  far/net.py:12" in text
    assert str(tmp_path) not in text


def test_every_mistake_has_its_cause_and_the_same_one_is_told_once():
    again = dataclasses.replace(CAUSE, fix="port.blocks[2].norm = paddle.nn.LayerNorm(8, epsilon=1e-05)")
    other = dataclasses.replace(
        CAUSE, code="op.activation", message="silu for gelu", fix="y = gelu(x)  # a.py:3"
    )
    lines = lines_of(
        divergence(cause=CAUSE),
        divergence("blocks.2.norm", cause=again),
        divergence("blocks.0", cause=other),
        divergence("blocks.1", cause=other),
    )
    start = lines.index("also: the same in blocks.2.norm")
    assert lines[start + 1].startswith("also: forward, blocks.0: ")
    assert lines[start + 2 : start + 6] == [
        "  cause      silu for gelu",
        "  proof      run again with it removed: error 100x before, 1.2x after",
        "  fix        y = gelu(x)  # a.py:3",
        "also: the same in blocks.1",
    ]
    assert lines[-1] == "next: make the fixes above, then align again"


def test_what_was_not_proven_is_called_likely_and_told_with_what_it_rests_on():
    read = dataclasses.replace(CAUSE, proof=None, rests_on=Grounds.SETTINGS)
    lines = lines_of(divergence(cause=read))
    assert f"  likely     {CAUSE.message}" in lines
    assert "  rests on   read from the settings of both sides; not run" in lines
    assert not any("cause" in line or "proof" in line for line in lines)


def test_the_same_mistake_in_layers_of_other_sizes_is_told_once():
    text = "epsilon is 1e-05 in the reference, 1e-06 in the port (LayerNorm {})"
    causes = [
        dataclasses.replace(
            CAUSE,
            message=text.format(path),
            fix=f"port.{path} = paddle.nn.LayerNorm({size})",
            facts=("LayerNorm", "epsilon", "1e-05", "1e-06"),
        )
        for path, size in (("a.norm", 8), ("b.norm", 16))
    ]
    lines = lines_of(divergence("a.norm", cause=causes[0]), divergence("b.norm", cause=causes[1]))
    assert "also: the same in b.norm" in lines


def test_other_values_are_another_mistake():
    other = dataclasses.replace(
        CAUSE,
        message="epsilon is 1e-12 in the reference, 1e-06 in the port",
        fix="port.blocks[2].norm = paddle.nn.LayerNorm(8, epsilon=1e-12)",
    )
    lines = lines_of(divergence(cause=CAUSE), divergence("blocks.2.norm", cause=other))
    assert not any("the same in" in line for line in lines)
    assert f"  fix        {other.fix}" in lines


def test_one_mistake_in_several_places_is_one_fix():
    again = dataclasses.replace(CAUSE, fix="port.d = paddle.nn.LayerNorm(8, epsilon=1e-05)")
    lines = lines_of(divergence(cause=CAUSE), divergence("d", cause=again), divergence("d", inherited=True))
    assert "also: the same in d" in lines
    assert "inherited: 1 further difference follows from this" in lines
    assert lines[-1] == "next: make the fix above, then align again"


def test_the_same_mistake_seen_twice_in_one_layer_is_not_told_as_two_layers():
    lines = lines_of(divergence(cause=CAUSE), divergence(cause=CAUSE, what="output 1"))
    assert not any("the same in" in line for line in lines)


def test_the_mode_is_told_and_what_it_does_not_see():
    coverage = dataclasses.replace(COVERAGE, directions=("forward",), mode="eval")
    text = str(report(coverage=coverage))
    assert "6 parameter gradients, forward in\n           eval mode" in text
    assert text.endswith("next: nothing to mend here")


def test_spelling_of_the_frameworks_is_no_setting_that_differs():
    sites = {
        side: site("fc", "Linear", weight_layout=layout, bias=bias)
        for side, layout, bias in (("reference", "out,in", True), ("port", "in,out", False))
    }
    settings = [line for line in lines_of(divergence(**sites)) if line.startswith("  settings")]
    assert settings == ["  settings   bias: True in the reference, False in the port"]


def test_why_differences_are_inherited_is_told_with_everything():
    further = [
        dataclasses.replace(divergence(path, port=site(path)), inherited=True, reason=reason)
        for path, reason in (
            ("a", InheritanceReason.GUILTY_CALL),
            ("b", InheritanceReason.GUILTY_CALL),
            ("c", InheritanceReason.CUT_OFF),
            ("d", None),
        )
    ]
    found = report(divergence(), *further)
    reasons = [
        "  2: made by a module that differs already (a, b)",
        "  1: a gradient that another call does not send (c)",
    ]
    lines = found.text(verbose=True).splitlines()
    start = lines.index("inherited: 4 further differences follow from this")
    assert lines[start + 1 : start + 3] == reasons
    assert not any("differs already" in line or "does not send" in line for line in str(found).splitlines())


def test_every_reason_has_words():
    assert set(REASONS) == set(InheritanceReason)


def test_a_note_that_repeats_the_settings_above_is_left_out():
    said, other = "blocks.1.norm has an epsilon of its own", "d has one, too"
    notes = tuple(
        dataclasses.replace(NOTE, message=message, setting=SettingDifference("epsilon", "1e-05", value))
        for message, value in ((said, "1e-06"), (other, "0.1"))
    )
    assert [line for line in lines_of(divergence(), findings=notes) if line.startswith("note")] == [
        f"note: {other}"
    ]
    assert f"note: {said}" in lines_of(divergence("d", port=site("d"), reference=site("d")), findings=notes)


def test_a_note_on_what_diverges_is_left_out():
    told = dataclasses.replace(NOTE, diverged=True)
    assert not any(line.startswith("note") for line in lines_of(divergence(), findings=(told,)))
    assert any(line.startswith("note") for line in lines_of(divergence(), findings=(NOTE,)))


def test_recorded_runs_have_no_noise():
    lines = lines_of(divergence(), scale="growth")
    assert lines[2] == "first divergence: forward, blocks.1.norm: output 0, 123x what went in"
    assert "  error      float32 2x4: rms 0.0884, relative 0.135, given 1e-07" in lines
    assert "noise" not in "\n".join(lines)
    assert " ".join(lines[-2:]).endswith(
        "one model with one set of weights, look at     models/net.py:34, then record and compare again"
    )


def test_the_code_of_a_block_and_the_model_itself_have_names():
    whole = dataclasses.replace(site("", "Net"), op="gelu")
    lines = lines_of(divergence(port=whole, what="input 0 of fc, made by the model's own code"))
    assert lines[2:4] == [
        "first divergence: forward, the model: input 0 of fc, made by the model's own",
        "    code, 123x the noise",
    ]
    assert "  port       (the model)  Net, gelu  models/net.py:12" in lines


def test_an_incomplete_run_is_the_same_only_so_far():
    note = dataclasses.replace(NOTE, code="run.incomplete")
    assert lines_of(findings=(note,))[0].startswith("SAME as far as recorded: Net (paddle")
    assert lines_of(divergence(), findings=(note,))[0].startswith("DIFFERENT: Net (paddle")


def test_calls_without_partner_in_recorded_runs_are_not_said_to_be_judged():
    text = str(report(unpaired_port=(site("y", "Identity"),), scale="growth"))
    assert "unpaired in the port: 1 Identity; not compared" in text


def test_a_layer_that_differs_in_every_call_is_told_once():
    again, other = divergence(), divergence(what="output 1")
    text = str(report(divergence(), again, other))
    assert text.count("blocks.1.norm: output 0") == 1
    assert "also: forward, blocks.1.norm: output 1, 123x the noise" in text


def test_what_the_cause_says_already_is_not_said_before_it():
    left = phrase("nothing is left for it")
    cause = dataclasses.replace(CAUSE, message=phrase("{what}: {left}", what="no counterpart", left=left))
    text = str(report(divergence(cause=cause, message=left)))
    assert text.count("nothing is left for it") == 1
    assert "  another thing" in str(report(divergence(cause=cause, message="another thing")))


def test_weights_that_one_line_mends_are_told_once():
    copy = dataclasses.replace(CAUSE, fix="parfocal.transfer(reference, port)")
    weights = [
        divergence(
            path, phase="weights", cause=dataclasses.replace(copy, message=f"{path} differs"), port=site(path)
        )
        for path in ("a.weight", "a.bias", "b.weight")
    ]
    other = divergence("c.weight", phase="weights", port=site("c.weight"), cause=CAUSE)
    lines = lines_of(*weights, other)
    assert "also: the same in a.bias, b.weight" in lines
    assert sum(line.startswith("  fix") for line in lines) == 2


def test_a_later_step_is_named():
    late = dataclasses.replace(divergence(), step=3)
    assert lines_of(late)[2] == "first divergence: step 3, forward, blocks.1.norm: output 0, 123x the noise"


@pytest.mark.parametrize("width", [40, 60])
def test_a_narrow_terminal(width):
    text = render(report(divergence(), findings=(NOTE,)), width)
    assert max(map(len, text.splitlines())) <= width
    assert text.split() == str(report(divergence(), findings=(NOTE,))).split()


def test_the_drift_where_blocks_cannot_be_printed(monkeypatch):
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding="latin-1"))
    text = str(report(divergence()))
    text.encode("latin-1")
    assert "drift      :::: up to 1.0e-07" in text


def test_a_line_of_code_without_end_loses_its_middle():
    """The whole of it is in the report's JSON, and with ``verbose``."""
    fix = f"port = f({', '.join(map(str, range(200)))})"
    told = report(divergence(cause=dataclasses.replace(CAUSE, fix=fix)))
    (line,) = (line for line in render(told).splitlines() if "port = f(" in line)
    assert len(line) <= WIDTH
    assert " ... " in line
    assert line.endswith("198, 199)")
    assert fix in render(told, verbose=True)
    assert told.to_json()["divergences"][0]["cause"]["fix"] == fix


def test_a_line_of_code_that_can_be_copied_is_whole():
    fix = f"port.layer = paddle.nn.Layer({', '.join(['size=1'] * 15)})"
    assert fix in render(report(divergence(cause=dataclasses.replace(CAUSE, fix=fix))))
