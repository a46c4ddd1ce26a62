"""The page in a real browser: it opens, expands, filters, folds, switches, prints, and asks for nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from parfocal.judge.verdict import Cause
from parfocal.report.report import Curve, Report
from tests.browser.conftest import Opened
from tests.browser.reports import long, pair, site, whole
from tests.unit.report.reports import CAUSE, divergence, report

RUDE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{7*7}}</style>"


def rows(opened: Opened) -> list[str]:
    """Paths of the port, whether or not they are on the screen."""
    path = "row.querySelector('.cell:nth-child(2) .path')"
    return opened.page.eval_on_selector_all(
        ".row", f"rows => rows.filter(row => !row.hidden).map(row => {path}?.textContent ?? '')"
    )


def drawn(opened: Opened, within: str, count: int) -> None:
    """Scroll to every plot, and wait until it is there."""
    plots = opened.page.locator(f"{within} .plot")
    assert plots.count() == count
    for plot in plots.all():
        plot.scroll_into_view_if_needed()
    opened.page.wait_for_function(
        f"[...document.querySelectorAll('{within} .plot')].every(plot => plot.dataset.drawn)"
    )


def test_the_verdict_and_the_coverage_come_first(show):
    opened = show(whole())
    assert opened.text(".stamp") == "DIFFERENT"
    assert opened.text("h1").split() == ["Net", "(paddle", "3.3.1)", "against", "Net", "(torch", "2.13.0)"]
    assert opened.seen(".tiles dt")[:2] == ["calls", "steps"]
    assert opened.seen(".tiles dd")[0] == "6 / 7"
    assert opened.text(".left-out li") == "buffers (not asked for)"
    first = opened.page.locator("section").first
    assert "verdict" in (first.get_attribute("class") or "")


def test_a_mistake_has_its_cause_its_proof_and_its_fix(show):
    opened = show(whole(), permissions=["clipboard-read", "clipboard-write"])
    (card,) = opened.seen(".mistake")
    assert "blocks.1.norm" in card
    assert "config.epsilon epsilon is 1e-05 in the reference, 1e-06 in the port" in card
    assert "run again with it removed: error 100x before, 1.2x after" in card
    assert opened.text(".mistake pre") == CAUSE.fix
    opened.page.click(".mistake .copy")
    opened.page.wait_for_function("document.querySelector('.mistake .copy').innerText === 'Copied'")
    assert opened.page.evaluate("navigator.clipboard.readText()") == CAUSE.fix


def test_both_trees_on_the_same_lines(show):
    opened = show(whole())
    assert rows(opened) == [
        *("the model整个模型", "blocks.0", "blocks.0.fc", "blocks.0.act", "blocks.0.dropout"),
        *("blocks.1", "blocks.1.norm", "blocks.1.fc", "head"),
    ]
    state = opened.page.eval_on_selector_all(".row", "rows => rows.map(row => row.classList[1])")
    assert state == ["same", "around", "same", "same", "unpaired", "around", "own", "same", "inherited"]
    alone = opened.page.locator(".row.unpaired .cell").all_text_contents()
    assert [text.strip() for text in alone] == ["not paired未配对", "blocks.0.dropout Dropout"]


def test_a_row_opens_by_mouse_and_keyboard(show):
    opened = show(whole())
    page = opened.page
    page.click("#row6 > .line")
    details = page.locator("#row6 .details")
    assert "123×" in details.inner_text()
    assert details.locator("tr.differs").all_inner_texts() == ["epsilon\t1e-05\t1e-06"]
    assert "models/net.py:6" in details.inner_text()
    assert "0.5 at [0, 3, " in details.inner_text()
    drawn(opened, "#row6", 3)
    assert page.locator("#row6 .bars path").count() > 0
    assert page.locator("#row6 .heatmaplayer image").count() == 2
    page.click("#row6 > .line")
    assert details.count() == 0
    page.focus("#row0 > .line")
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert page.locator("#row2 .details").count() == 1
    assert page.get_attribute("#row2 > .line", "aria-expanded") == "true"
    page.keyboard.press("Escape")
    assert page.locator("#row2 .details").count() == 0


def test_modules_fold(show):
    opened = show(whole())
    page = opened.page
    page.focus("#row5 > .line")
    page.keyboard.press("ArrowLeft")
    assert rows(opened)[-3:] == ["blocks.0.dropout", "blocks.1", "head"]
    page.keyboard.press("ArrowRight")
    assert len(rows(opened)) == 9
    page.click("#row0 .fold")
    assert rows(opened) == ["the model整个模型"]
    page.click(".mistake a[data-row]")  # whoever asks for a row sees it
    assert page.locator("#row6 .details").count() == 1


def test_filters(show):
    opened = show(whole())
    page = opened.page
    page.fill("input[type=search]", "LAYERNORM")
    assert rows(opened) == ["the model整个模型", "blocks.1", "blocks.1.norm"]
    page.fill("input[type=search]", "no such thing")
    assert opened.seen(".nothing") == ["nothing matches"]
    page.fill("input[type=search]", "")
    page.check("input[name=divergent]")
    assert rows(opened) == ["the model整个模型", "blocks.1", "blocks.1.norm", "head"]
    page.uncheck("input[name=divergent]")
    page.select_option("select[name=kind]", "ReLU")
    assert rows(opened) == ["the model整个模型", "blocks.0", "blocks.0.act"]
    page.select_option("select[name=kind]", "")
    page.select_option("select[name=phase]", "backward")
    assert rows(opened) == ["the model整个模型", "head"]
    assert opened.text(".filters output") == "2 / 9 rows"


def test_the_language_is_switched_and_follows_the_browser(show):
    opened = show(whole())
    page = opened.page
    page.click("#row6 > .line")
    page.click("button[data-language=zh]")
    assert opened.text(".stamp") == "不一致"
    assert opened.seen("h2")[0].startswith("错误")
    assert page.get_attribute("input[type=search]", "placeholder") == "搜索路径或类型"
    assert page.locator("select[name=phase] option").nth(1).inner_text() == "前向"
    assert "设置" in opened.text("#row6 .details")
    assert page.get_attribute("html", "lang") == "zh-Hans"
    assert opened.seen('span[lang="en"]') == []
    page.click("button[data-language=en]")
    assert opened.text(".stamp") == "DIFFERENT"
    assert show(whole(), locale="zh-CN").text(".stamp") == "不一致"


def test_plots_along_the_depth_and_of_curves(show):
    opened = show(whole())
    page = opened.page
    drawn(opened, "body", 3)
    for name in ("forward", "backward", "curve"):
        assert page.locator(f".plot[data-plot={name}] .scatterlayer path").count() > 0
    words = page.locator(".plot[data-plot=curve]").inner_text()
    assert "chaos horizon" in words


def test_steps_and_weights(show):
    opened = show(whole())
    assert opened.seen("#steps tbody th") == ["forward", "backward"]
    assert opened.page.locator("#steps td.own").count() == 1
    assert "transposed" in opened.text("#weights")
    assert "extra.weight" in opened.text("#weights tr.left")


def test_a_pair_that_is_the_same(show):
    opened = show(report())
    assert opened.text(".stamp") == "SAME"
    assert opened.page.locator(".mistake, .row.own, #steps").count() == 0
    assert len(rows(opened)) == 4


def test_nothing_but_numbers_was_compared(show):
    """A schedule or data: no models, no rows."""
    curves = (Curve("learning rate", (0.1, 0.1), (0.1, 0.01)),)
    bad = divergence(phase="lr", reference=site("", 0), port=site("", 0), message="from step 1 on")
    opened = show(report(bad, pairs=(), along=(), curves=curves))
    assert opened.page.locator(".tree").count() == 0
    assert "from step 1 on" in opened.text(".mistake")
    drawn(opened, "#curves", 1)
    drawn(opened, ".mistake", 2)  # its pictures have no row to be in


def rude() -> Report:
    where = replace(site(RUDE, 1, RUDE, **{RUDE: RUDE}), file=f"/{RUDE}/{RUDE}.py", op=RUDE)
    cause = Cause(
        "config.epsilon", RUDE, RUDE, CAUSE.proof, alternatives=(replace(CAUSE, message=RUDE, fix=RUDE),)
    )
    made = whole(
        reference_name=RUDE,
        port_name=RUDE,
        pairs=(replace(pair("", 0), reference=where, port=where, why=RUDE), pair("x", 2)),
        unpaired_reference=(),
        unpaired_port=(),
        curves=(Curve(RUDE, (1.0, 2.0), (1.0, 2.5)),),
        findings=(replace(whole().findings[0], message=RUDE),),
    )
    bad = divergence(reference=where, port=where, what=RUDE, message=RUDE, cause=cause)
    return replace(made, divergences=(bad,))


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_what_users_named_is_text_and_never_markup(show, locale):
    """The fixture sees that no dialog opens and nothing is asked for."""
    opened = show(rude(), locale=locale)
    page = opened.page
    page.click("#row0 > .line")
    drawn(opened, "#row0", 2)
    drawn(opened, "#depth", 2)
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 4  # facts, packed library, our own, and the unpacked library
    assert opened.text("h1").count(RUDE) == 2
    assert RUDE in opened.text("#row0 > .line")
    assert RUDE in opened.text("#row0 .details")
    assert page.title().count(RUDE) == 2
    page.hover(".plot[data-plot=forward] .nsewdrag")
    page.fill("input[type=search]", "<script>")
    assert len(opened.seen(".row")) == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_system(show, scheme):
    page = show(whole(), color_scheme=scheme).page
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") is (scheme == "light")


@pytest.mark.parametrize("width", [360, 768, 1400])
def test_nothing_is_wider_than_the_screen(show, width):
    opened = show(whole(), viewport={"width": width, "height": 800})
    page = opened.page
    page.click("#row6 > .line")
    drawn(opened, "body", 6)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_it_prints(show):
    opened = show(whole())
    page = opened.page
    drawn(opened, "body", 3)
    page.emulate_media(media="print")
    assert not page.is_visible(".bar")
    assert not page.is_visible(".filters")
    assert page.is_visible("#row8")
    assert page.pdf().startswith(b"%PDF")


def test_thousands_of_rows(show):
    opened = show(long(5000))
    page = opened.page
    assert page.locator(".row").count() == 5001
    visibility = page.eval_on_selector(".block", "block => getComputedStyle(block).contentVisibility")
    assert visibility == "auto"  # what is out of sight is not laid out
    page.check("input[name=divergent]")
    assert len(rows(opened)) == 3
    page.click(".mistake a[data-row]")
    assert page.locator(".row.own .details").count() == 1
