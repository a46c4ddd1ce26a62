"""Which calls of a trace belong together."""

from __future__ import annotations

from types import SimpleNamespace

from parfocal.replay.trace import Trace

PATHS = ("", "block", "block.norm", "head", "head")


def test_calls_of_one_module_are_together_and_in_order() -> None:
    trace = Trace([SimpleNamespace(order=order, path=path) for order, path in enumerate(PATHS)])
    orders = {path: [node.order for node in nodes] for path, nodes in trace.calls_by_path().items()}
    assert orders == {"": [0], "block": [1], "block.norm": [2], "head": [3, 4]}


def test_a_parameter_belongs_to_its_module_or_the_next_around_that_is_called() -> None:
    trace = Trace([SimpleNamespace(order=order, path=path) for order, path in enumerate(PATHS)])
    assert trace.calls_of_owner("head.weight") == [3, 4]
    assert trace.calls_of_owner("block.norm.weight") == [2]
    assert trace.calls_of_owner("block.scale.of.weight") == [1]
    assert trace.calls_of_owner("token") == [0]
    assert trace.calls_of_owner("elsewhere.weight") == [0]
    assert Trace().calls_of_owner("token") == []
