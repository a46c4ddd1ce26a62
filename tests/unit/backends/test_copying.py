"""A quick deep copy is what ``copy.deepcopy`` makes, for modules and for what they keep."""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict, defaultdict

import pytest

from parfocal.backends.copying import copied


class Part:
    def __init__(self):
        self.hooks, self.others, self.names, self.seen = OrderedDict(), {}, [], set()
        self.shared = self.hooks
        self.full, self.counted = {"a": [1]}, defaultdict(int)
        self.sizes, self.pair, self.kind = (1, 2), ([1], 2), Part
        self.itself, self.around = self, {"part": self}


class Stateful(Part):
    """Leaves something out, and makes it anew."""

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "others"}

    def __setstate__(self, state):
        vars(self).update(state)
        self.others = {"made": "anew"}


class Slotted:
    __slots__ = ("size",)

    def __init__(self):
        self.size = [3]


class OwnCopy:
    def __init__(self):
        self.copies = []

    def __deepcopy__(self, memo):
        return self


class Reduced:
    """Is made by a function of its own."""

    def __init__(self, size=0):
        self.size = size

    def __reduce__(self):
        return Reduced, (self.size + 1,)


class Strange(Part):
    def __getstate__(self):
        return (1, 2)

    def __setstate__(self, state):
        self.state = state


@pytest.mark.parametrize("kind", [Part, Stateful])
def test_a_copy_is_what_a_deep_copy_is(kind):
    part = kind()
    twin, plain = copied(part, {}), copy.deepcopy(part)
    assert list(vars(twin)) == list(vars(plain))
    assert twin.itself is twin
    assert twin.around["part"] is twin
    for name in vars(plain).keys() - {"itself", "around"}:
        value, usual = getattr(twin, name), getattr(plain, name)
        assert value == usual, name
        assert type(value) is type(usual), name
        assert (value is getattr(part, name)) == (usual is getattr(part, name)), name


def test_a_copy_shares_nothing_that_can_change():
    part = Part()
    twin = copied(part, {})
    twin.full["a"].append(2)
    twin.hooks[1] = 2
    twin.pair[0].append(2)
    assert part.full == {"a": [1]}
    assert not part.hooks
    assert part.pair == ([1], 2)


def test_what_is_one_container_stays_one():
    twin = copied(Part(), {})
    assert twin.shared is twin.hooks


def test_what_was_copied_before_is_taken():
    part, known = Part(), ["known"]
    assert copied(part, {id(part.names): known}).names is known


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        (Slotted(), lambda each: each.size),
        (Reduced(), lambda each: each.size),
        (Strange(), lambda each: each.state),
        (defaultdict(list, {"a": [1]}), lambda each: (dict(each), each.default_factory)),
        (frozenset({1}), lambda each: each),
    ],
)
def test_what_has_a_way_of_its_own_is_copied_that_way(value, seen):
    assert seen(copied(value, {})) == seen(copy.deepcopy(value))
    assert type(copied(value, {})) is type(value)


def test_who_does_not_want_to_be_copied_is_not():
    own = OwnCopy()
    assert copied({"own": own}, {})["own"] is own


def test_what_cannot_be_copied_says_so():
    part = Part()
    part.lock = threading.Lock()
    with pytest.raises(TypeError, match="lock"):
        copied(part, {})


def test_the_rest_is_left_to_another():
    def marked(value, memo):
        return "marked"

    part = Part()
    part.own = Slotted()
    assert copied(part, {}, marked).own == "marked"


def test_states_that_are_made_anew_are_not_taken_for_each_other():
    class Fresh:
        def __init__(self, number):
            self.number = number

        def __getstate__(self):
            return {"held": [self.number, []]}

    copies = copied([Fresh(number) for number in range(100)], {})
    assert [each.held[0] for each in copies] == list(range(100))
    assert len({id(each.held) for each in copies}) == 100
