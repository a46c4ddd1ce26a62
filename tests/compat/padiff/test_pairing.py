"""Which call is which: by definition order among siblings, by map, and by kind where that fails."""

from dataclasses import dataclass

from parfocal.compat.padiff.pairing import pair_calls


@dataclass
class Node:
    path: str
    net_id: int
    kind: str = "Linear"
    layer_type: str = "net"
    builtin: bool = True


def names(base, raw, layer_map=None):
    pairs = pair_calls(base, raw, layer_map or {})
    return [(a.path, b.path) for a, b in pairs.of(base, raw)], pairs.problem


def test_the_order_of_definition_counts_not_the_order_of_calls():
    base = [Node("a", 1), Node("b", 2)]
    raw = [Node("y", 2), Node("x", 1)]
    assert names(base, raw) == ([("a", "x"), ("b", "y")], "")


def test_repeated_calls_pair_in_order():
    base = [Node("a", 1), Node("a", 1), Node("b", 2)]
    raw = [Node("x", 1), Node("y", 2), Node("x", 1)]
    pairs = pair_calls(base, raw, {})
    assert pairs.positions == ((0, 0), (1, 2), (2, 1))


def test_positions_count_among_siblings_only():
    base = [Node("a", 1), Node("b", 2)]
    raw = [Node("x", 4), Node("y", 9)]
    assert names(base, raw) == ([("a", "x"), ("b", "y")], "")


def test_mapped_layers_pair_by_the_map():
    base = [Node("a", 1, layer_type="in map"), Node("b", 2, layer_type="in map"), Node("c", 3)]
    raw = [Node("x", 1, layer_type="in map"), Node("y", 2, layer_type="in map"), Node("z", 3)]
    assert names(base, raw, {"a": "y", "b": "x"}) == ([("a", "y"), ("b", "x"), ("c", "z")], "")


def test_an_extra_call_leaves_the_others_paired():
    base = [Node("a", 1), Node("relu", 2, "ReLU"), Node("b", 3)]
    raw = [Node("x", 1), Node("y", 2)]
    assert names(base, raw) == ([("a", "x"), ("b", "y")], "number of normal layer is different")


def test_kinds_that_contradict_the_order_win():
    base = [Node("conv", 1, "Conv2d"), Node("linear", 2)]
    raw = [Node("conv", 2, "Conv2d"), Node("linear", 1)]
    assert names(base, raw)[0] == [("conv", "conv"), ("linear", "linear")]


def test_a_users_classes_may_be_called_anything():
    base, raw = [Node("a", 1, "MyBlock", builtin=False)], [Node("x", 1, "BlockPaddle", builtin=False)]
    assert names(base, raw) == ([("a", "x")], "")


def test_functions_pair_in_order():
    base = [Node("", -1, "relu", "api"), Node("", -1, "add", "api")]
    assert pair_calls(base, base, {}).positions == ((0, 0), (1, 1))
    assert pair_calls(base, base[1:], {}).positions == ((1, 0),)
