"""Empty containers of a module are copied beforehand, each to one of its own."""

from __future__ import annotations

import copy
from collections import OrderedDict, defaultdict

from parfocal.backends.copying import empty_containers


class Part:
    def __init__(self):
        self.hooks, self.others, self.names, self.seen = OrderedDict(), {}, [], set()
        self.shared = self.hooks
        self.full, self.counted = {"a": [1]}, defaultdict(int)


def test_a_copy_has_containers_of_its_own():
    part = Part()
    twin = copy.deepcopy(part, empty_containers([part]))
    plain = copy.deepcopy(part)
    assert vars(twin) == vars(plain)
    for name, value in vars(twin).items():
        assert value is not getattr(part, name), name
        assert type(value) is type(getattr(part, name)), name
    twin.full["a"].append(2)
    twin.hooks[1] = 2
    assert part.full == {"a": [1]}
    assert not part.hooks


def test_what_is_one_container_stays_one():
    part = Part()
    twin = copy.deepcopy(part, empty_containers([part]))
    assert twin.shared is twin.hooks


def test_what_holds_something_or_is_of_another_kind_is_left_to_the_copy():
    part = Part()
    assert id(part.full) not in empty_containers([part])
    assert id(part.counted) not in empty_containers([part])  # it would lose its default
