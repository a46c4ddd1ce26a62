"""When the names of both sides contradict what fits."""

from __future__ import annotations

import pytest

from parfocal.weights.crossing import counterpart, crossed
from parfocal.weights.fused import crossed_order


def test_exchanged_names() -> None:
    ports, fitting = ["a.q_proj", "a.k_proj", "a.v_proj"], ["b.key", "b.query", "b.value"]
    (found,) = crossed(ports, fitting)
    assert found.targets == ("a.q_proj", "a.k_proj")
    assert found.fitting == ("b.key", "b.query")
    assert found.named == ("b.query", "b.key")
    assert not found.certain


def test_a_cycle_of_three() -> None:
    (found,) = crossed(["a.q", "a.k", "a.v"], ["b.k_proj", "b.v_proj", "b.q_proj"])
    assert found.named == ("b.q_proj", "b.k_proj", "b.v_proj")
    assert found.certain


@pytest.mark.parametrize(
    ("ports", "fitting"),
    [
        (["a.q", "a.k"], ["b.query", "b.key"]),  # they agree
        (["a.fc1", "a.fc2"], ["b.linear_out", "b.linear_in"]),  # nothing in common
        (["a.0", "a.1"], ["b.1", "b.0"]),  # the numbers of a list
        (["a.q", "a.k"], ["b.k", "b.v"]),  # k is not in exchange for q
        (["a.gate", "a.up"], ["b.w3", "b.w1"]),
    ],
)
def test_no_contradiction(ports: list[str], fitting: list[str]) -> None:
    assert crossed(ports, fitting) == []


def test_wrapped_layers_are_told_apart_by_what_is_around_them() -> None:
    ports, fitting = ["a.gate.linear", "a.up.linear"], ["b.up.fc", "b.gate.fc"]
    assert crossed(ports, fitting)[0].certain


def test_a_name_that_two_share_says_nothing() -> None:
    assert counterpart("a.in_1", ["a.in_1", "a.in_2"], ["b.in", "b.out"]) is None


def test_orders_that_a_name_spells() -> None:
    found = crossed_order("a.qkv", ["b.k_proj", "b.q_proj", "b.v_proj"], True)
    assert found is not None
    assert found.targets == ("b.k_proj", "b.q_proj")
    assert found.fitting == ("a.qkv[q]", "a.qkv[k]")
    assert found.named == ("a.qkv[k]", "a.qkv[q]")
    assert crossed_order("a.qkv", ["b.q_proj", "b.k_proj", "b.v_proj"], True) is None
    assert crossed_order("a.in_proj", ["b.k_proj", "b.q_proj", "b.v_proj"], True) is None
    assert crossed_order("a.kvq", ["b.key", "b.value", "b.query"], False) is None
    assert crossed_order("a.gate_up_proj", ["b.up", "b.gate"], False) is not None
