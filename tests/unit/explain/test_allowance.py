"""The search for causes ends with its allowance, and says what it left."""

from __future__ import annotations

from parfocal.explain.allowance import SEARCH, SHARES, Allowance
from parfocal.replay.effort import Effort

OWN = 1000.0


def allowance(**wishes):
    effort = Effort()
    effort.charge(OWN)
    return Allowance(effort, **wishes)


def test_beyond_the_first_share_nothing_better_is_looked_for():
    spent = allowance()
    assert spent.has_room
    spent.effort.charge(SHARES[0] * OWN)
    assert not spent.has_room
    assert spent.begin("a")  # another cause is
    assert spent.left == []


def test_beyond_the_second_no_search_begins_or_goes_on():
    spent = allowance()
    spent.effort.charge(SHARES[1] * OWN)
    assert spent.is_used_up
    assert not spent.begin("b")
    assert not spent.begin("c")
    assert not spent.begin("b")
    assert spent.left == ["b", "c"]


def test_every_search_is_some_work():
    spent = allowance()
    spent.begin("a")
    assert spent.share == SEARCH / OWN


def test_a_thorough_search_never_ends():
    spent = allowance(thorough=True)
    spent.effort.charge(100 * OWN)
    assert spent.begin("a")
    assert spent.has_room
    assert not spent.is_used_up
    assert spent.left == []


def test_where_nothing_was_aligned_nothing_is_used_up():
    assert Allowance(Effort()).share == 0.0
