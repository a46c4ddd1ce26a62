"""What keeps matching linear in the size of a model gives what weighing everything gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parfocal.weights import pieces, print_index, sequences
from parfocal.weights.assignment import definition_order, match
from parfocal.weights.drafting import build
from parfocal.weights.fingerprint import distances, fingerprint
from parfocal.weights.print_index import PrintIndex
from parfocal.weights.state import read_mapping
from parfocal.weights.units import Unit, read_units, with_kinds

BLOCKS = 200


def units(
    names: tuple[str, ...], blocks: int = BLOCKS, start: int = 0, more: tuple[str, ...] = ()
) -> list[Unit]:
    """Square layers of these names in every block, and layers of another shape."""
    arrays = {
        f"layers.{number}.{name}.{tensor}": np.zeros(
            (8, 8 if name in names else 4)[: 2 if tensor == "weight" else 1]
        )
        for number in range(start, start + blocks)
        for name in (*more, *names)
        for tensor in ("weight", "bias")
    }
    contents = read_mapping("torch", arrays)
    return read_units(with_kinds(contents, contents))


def pairs(references: list[Unit], ports: list[Unit]) -> dict[str, str]:
    draft = build(references, ports, None)
    return {link.reference.path: path for path, link in draft.links.items()}


@pytest.mark.parametrize(
    ("names", "start"),
    [(("fc1", "fc2"), 0), (("fc1", "fc2"), 1), (("left", "right"), 0), (("down", "up"), 0)],
)
def test_pieces_give_what_weighing_everything_gives(
    names: tuple[str, ...], start: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    references, ports = units(("up", "down"), 40), units(names, 40, start)
    monkeypatch.setattr(pieces, "WEIGHED", 10**6)
    expected = pairs(references, ports)
    monkeypatch.setattr(pieces, "WEIGHED", 16)
    assert pairs(references, ports) == expected
    assert len(expected) == 80


def test_no_piece_is_large_and_all_units_are_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    weighed: list[int] = []
    real = pieces.cut

    def cut(*given: Any) -> Any:
        for piece in real(*given):
            weighed.append(len(piece.references))
            yield piece

    monkeypatch.setattr("parfocal.weights.assignment.cut", cut)
    found = pairs(units(("up", "down")), units(("one", "two")))
    assert len(found) == 2 * BLOCKS
    assert found["layers.7.up"] == "layers.7.one"
    assert max(weighed) <= pieces.WEIGHED


def test_without_an_order_numbers_divide_a_group() -> None:
    references, ports = units(("up", "down")), units(("down", "up"))
    shuffled = [ports[place] for place in np.random.default_rng(0).permutation(len(ports))]
    links = match(references, shuffled, []).links
    assert {(link.reference.path, link.port.path) for link in links} == {
        (unit.path,) * 2 for unit in references
    }


def test_what_nothing_divides_is_undecided() -> None:
    letters = [f"x{chr(97 + first)}{chr(97 + second)}" for first in range(10) for second in range(10)]
    mine = read_mapping("torch", {f"a{name}.weight": np.zeros((3, 3)) for name in letters})
    yours = read_mapping("torch", {f"b{name}z.weight": np.zeros((3, 3)) for name in reversed(letters)})
    references, ports = (read_units(with_kinds(each, each)) for each in (mine, yours))
    links = match(references, ports, []).links
    assert len(links) == 100
    assert not any(link.decided for link in links)


@pytest.mark.parametrize("lacking", [0, 3, 150])
def test_a_block_that_lacks_layers_does_not_shift_the_others(lacking: int) -> None:
    references = units(("up", "down"), more=("narrow",))
    ports = units(("up", "down"), more=("narrow",))
    del ports[lacking * 3 : lacking * 3 + 2]
    order = definition_order(references, ports)
    found = sequences.aligned(references, ports, order, lambda unit: unit.key)
    assert found.trusted
    assert len(found.partner) == len(ports)
    inside = f"layers.{lacking}."  # here one of two alike may stand for the other
    assert all(mine == yours for mine, yours in found.partner.items() if not mine.startswith(inside))


@pytest.mark.parametrize("seed", range(20))
def test_few_edits_leave_out_as_few_as_possible(seed: int) -> None:
    generator = np.random.default_rng(seed)
    first = generator.integers(0, 3, 60).tolist()
    second = [code for code in first if generator.random() > 0.1]
    second.insert(int(generator.integers(0, len(second))), 5)
    found = sequences._with_few_edits(first, second)
    assert found is not None
    assert all(first[mine] == second[yours] for mine, yours in found)
    assert found == sorted(set(found))
    assert len({mine for mine, _ in found}) == len({yours for _, yours in found}) == len(found)
    longest = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for row, code in enumerate(first):
        for column, other in enumerate(second):
            longest[row + 1][column + 1] = (
                longest[row][column] + 1
                if code == other
                else max(longest[row][column + 1], longest[row + 1][column])
            )
    assert len(found) == longest[-1][-1]


def test_many_edits_are_given_up() -> None:
    assert sequences._with_few_edits([1] * 500, [2] * 500) is None


def test_an_index_finds_all_that_are_near() -> None:
    generator = np.random.default_rng(3)
    arrays = [generator.standard_normal((4, 9)).astype("float32") for _ in range(300)]
    # as norms give them: mean and size are the same everywhere
    arrays = [(array - array.mean()) / array.std() for array in arrays]
    arrays += [array * (1.0 + 1e-4 * generator.standard_normal(array.shape)) for array in arrays[:50]]
    prints = [(fingerprint(array),) for array in arrays]
    index = PrintIndex(enumerate(prints))
    assert len(arrays) > print_index.FEW
    for each in prints[:60]:
        for radius in (2e-3, 5e-2):
            near = {number for number, other in enumerate(prints) if distances(each, other) <= radius}
            assert near <= set(index.near(each, radius))
    assert len(index.near(prints[100], 2e-3)) < 20
    assert {7, 307} <= set(index.nearest(prints[7], 4))


@pytest.mark.parametrize("size", [64, 4096])
def test_a_larger_index_gives_no_more_candidates(size: int) -> None:
    generator = np.random.default_rng(5)

    def candidates(count: int) -> float:
        """For each of so many tensors as norms give them, whose moments are much alike."""
        arrays = generator.standard_normal((count, size))
        arrays -= arrays.mean(axis=1, keepdims=True)
        arrays /= arrays.std(axis=1, keepdims=True)
        prints = [(fingerprint(array.reshape(4, -1)),) for array in arrays]
        index = PrintIndex(enumerate(prints))
        return sum(len(index.near(each, 2e-3)) for each in prints) / count

    assert candidates(2000) < 1.2  # itself, and next to no other


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
def test_an_index_finds_what_is_near_where_one_stretch_outweighs_the_rest(share: float) -> None:
    generator = np.random.default_rng(6)
    base = generator.standard_normal((60, 64))
    base[:, 0] = np.abs(base).sum(axis=1) * share / (1.0 - share)
    moved = [array * (1.0 + 0.02 * generator.uniform(-1, 1, array.shape)) for array in base for _ in range(4)]
    prints = [(fingerprint(array),) for array in (*base, *moved)]
    index = PrintIndex(enumerate(prints))
    checked = 0
    for each in prints[:60]:
        near = {number for number, other in enumerate(prints) if distances(each, other) <= 5e-2}
        assert near <= set(index.near(each, 5e-2))
        checked += len(near) - 1
    assert checked > 60


def test_an_index_finds_the_same_values_in_another_shape() -> None:
    generator = np.random.default_rng(7)
    arrays = [generator.standard_normal((4, 9)) for _ in range(100)]
    index = PrintIndex(enumerate((fingerprint(array.T),) for array in arrays))
    for number, array in enumerate(arrays):
        assert number in index.near((fingerprint(array),), 2e-3)
        assert number in index.nearest((fingerprint(array),), 2)


def test_an_index_keeps_what_no_number_describes() -> None:
    odd = [(fingerprint(np.full(5, value, "float32")),) for value in (0.0, np.nan, np.inf)]
    index = PrintIndex(enumerate([*odd, (fingerprint(np.arange(5.0)),)]))
    assert index.near(odd[1], 1e-3) == [0, 1, 2, 3]
