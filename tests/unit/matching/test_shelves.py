"""Calls that give about the same are found among many without asking all of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from parfocal.matching import weightless
from parfocal.matching.anchors import anchors_of
from parfocal.matching.pairing import pair_calls
from parfocal.matching.shelves import Shelves
from parfocal.matching.values import SAME, distance
from tests.unit.matching.traces import Does, trace, value


def calls_giving(arrays):
    """One call for each array."""
    found = trace(*(Does(str(number), "GELU", [], [f"t{number}"]) for number in range(len(arrays))))
    for node, array in zip(found.nodes, arrays, strict=True):
        node.outputs = {"0": value(array)}
    return found.nodes


def test_all_that_is_alike_is_found():
    generator = np.random.default_rng(0)
    base = generator.normal(size=64).astype("float32")
    # from far below what counts as the same to far above it, in every figure
    scales = np.exp(generator.uniform(-4 * SAME, 4 * SAME, size=60))
    others = [base * scale for scale in scales.astype("float32")]
    others += [base + shift for shift in (0.0, SAME / 9, SAME, 0.1)]
    others += [np.zeros(64, "float32"), np.full(64, np.nan, "float32"), np.full(64, np.inf, "float32")]
    nodes = calls_giving(others)
    shelves = Shelves()
    for node in nodes:
        shelves.put(node)
    several = narrowed = 0  # nodes for which there is something to find, and something to leave out
    for node in nodes:
        marks = node.outputs["0"].data.fingerprint
        alike = {
            each.order for each in nodes if distance(marks, each.outputs["0"].data.fingerprint) <= SAME
        }  # by asking all
        found = [each.order for each in shelves.like(node)]
        assert found == sorted(found)
        assert alike <= set(found)
        several += len(alike) > 1
        narrowed += len(found) < len(nodes)
    assert several > 10
    assert narrowed > 10


def test_what_was_taken_is_not_found_again():
    one, other = calls_giving([np.ones(4, "float32")] * 2)
    shelves = Shelves()
    shelves.put(one)
    shelves.put(other)
    shelves.take(one)
    assert [each.order for each in shelves.like(one)] == [other.order]


def row(count, name):
    """So many activations after one another, each with values of its own."""
    inside = [Does(f"{name}{n}", "GELU", [f"{n}"], [f"{n + 1}"]) for n in range(count)]
    return trace(Does("", "Net", ["0"], [f"{count}"], inside))


def equal(count, name):
    """So many activations that all give the same."""
    inside = [Does(f"{name}{n}", "GELU", ["x"], ["y"]) for n in range(count)]
    return trace(Does("", "Net", ["x"], ["y"], inside))


@pytest.mark.parametrize("make", [row, equal])
def test_pairing_by_values_asks_about_few(make, monkeypatch):
    asked = []

    def counting(*marks):
        asked.append(marks)
        return distance(*marks)

    monkeypatch.setattr(weightless, "distance", counting)
    numbers = {}
    for count in (100, 400):
        asked.clear()
        pairing = pair_calls(make(count, "a"), make(count, "b"), anchors_of([]))
        assert [pair.reference for pair in pairing.pairs] == [pair.port for pair in pairing.pairs]
        assert len(pairing.pairs) == count + 1
        numbers[count] = len(asked)
    assert numbers[400] <= 400 * math.log2(400)
    assert numbers[400] <= 8 * numbers[100]
