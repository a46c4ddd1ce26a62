"""Full collections are put off, and the user's thresholds come back."""

from __future__ import annotations

import gc

import pytest

from parfocal.collecting import OF_MANY_CALLS, full_collections_put_off


@pytest.fixture
def thresholds():
    before = gc.get_threshold()
    gc.set_threshold(300, 4, 3)
    yield gc.get_threshold()
    gc.set_threshold(*before)


def test_put_off_until_the_end(thresholds):
    with full_collections_put_off(OF_MANY_CALLS):
        young, middle, full = gc.get_threshold()
        assert thresholds[0] < young < 10**5
        assert middle > 10**6  # what outlived a young collection is kept, as a rule
        assert full > 10**6
    assert gc.get_threshold() == thresholds


def test_young_garbage_as_often_as_the_user_wishes(thresholds):
    with full_collections_put_off():
        assert gc.get_threshold()[:2] == thresholds[:2]
        assert gc.get_threshold()[2] > 10**6
    assert gc.get_threshold() == thresholds


def test_inside_each_other_the_outer_one_goes_on(thresholds):
    with full_collections_put_off(OF_MANY_CALLS):
        outer = gc.get_threshold()
        with full_collections_put_off():
            assert gc.get_threshold() == outer
        assert gc.get_threshold() == outer
    assert gc.get_threshold() == thresholds


def test_a_user_who_collects_less_often_is_left_alone(thresholds):
    gc.set_threshold(10**6, 4, 3)
    with full_collections_put_off(OF_MANY_CALLS):
        assert gc.get_threshold()[0] == 10**6


def test_what_the_user_switched_off_stays_off(thresholds):
    gc.set_threshold(0)
    with full_collections_put_off(OF_MANY_CALLS):
        assert gc.get_threshold()[0] == 0


def test_put_off_until_they_are_resumed(thresholds):
    with full_collections_put_off(OF_MANY_CALLS) as resume:
        resume()
        assert gc.get_threshold() == thresholds
    assert gc.get_threshold() == thresholds


def test_an_error_leaves_nothing_behind(thresholds):
    with pytest.raises(ValueError, match="wrong"), full_collections_put_off(OF_MANY_CALLS):
        raise ValueError("wrong")
    assert gc.get_threshold() == thresholds


def test_what_dies_young_is_collected_all_the_same():
    class Node:
        pass

    with full_collections_put_off(OF_MANY_CALLS):
        for _ in range(120_000):  # garbage that counting references does not free
            node = Node()
            node.itself = node
        # by type: to ask isinstance of whatever lives in this process wakes objects that pretend to be others
        alive = sum(type(each) is Node for each in gc.get_objects())
    assert alive < 60_000
