"""Matching of plain descriptions: no framework, no values; names, shapes and order only."""

from __future__ import annotations

from typing import Any

import pytest

from parfocal.weights.drafting import Draft, build
from parfocal.weights.finishing import conclude
from parfocal.weights.plan import Plan
from parfocal.weights.state import Owner, SideContents, StoredTensor
from parfocal.weights.units import parts_of, read_units, with_kinds

Layer = tuple[str, str, dict[str, tuple[int, ...]]]


def contents(framework: str, *layers: Layer, **more: Any) -> SideContents:
    """Modules given as (path, kind, {local name: shape})."""
    layout = {"weight_layout": "in,out" if framework == "paddle" else "out,in"}
    stored = [
        StoredTensor(
            f"{path}.{name}", path, name, shape, "float32", "buffer" if name in BUFFERS else "parameter"
        )
        for path, _, tensors in layers
        for name, shape in tensors.items()
    ]
    return SideContents(
        framework, tuple(stored), {path: Owner(path, kind, layout) for path, kind, _ in layers}, **more
    )


BUFFERS = ("running_mean", "running_var", "_mean", "_variance", "num_batches_tracked", "mask")


def linear(path: str, inputs: int, outputs: int, framework: str = "torch") -> Layer:
    weight = (inputs, outputs) if framework == "paddle" else (outputs, inputs)
    return path, "Linear", {"weight": weight, "bias": (outputs,)}


def drafted(reference: SideContents, port: SideContents) -> tuple[Draft, Plan]:
    draft = build(read_units(reference), read_units(port), None)
    return draft, conclude(draft, (reference, port), lambda first, second: False)


def pairs(plan: Plan) -> dict[str, str]:
    return {entry.target: entry.source for entry in plan.entries}


def test_names_win_over_the_order_of_definition() -> None:
    reference = contents("torch", *(linear(f"attn.{n}_proj", 4, 4) for n in ("q", "k", "v")))
    port = contents("paddle", *(linear(f"attention.{n}", 4, 4, "paddle") for n in ("value", "query", "key")))
    _, plan = drafted(reference, port)
    assert plan.complete
    assert pairs(plan)["attention.query.weight"] == "attn.q_proj.weight"
    assert pairs(plan)["attention.value.bias"] == "attn.v_proj.bias"


def test_numbers_counted_from_another_start_go_by_order() -> None:
    reference = contents("torch", *(linear(f"features.{n}", 4, 4) for n in (0, 3, 6, 9)))
    port = contents("paddle", *(linear(f"features.{n}", 4, 4, "paddle") for n in (0, 4, 9, 12)))
    _, plan = drafted(reference, port)
    assert [entry.source for entry in plan.entries if "weight" in entry.source] == [
        f"features.{n}.weight" for n in (0, 3, 6, 9)
    ]
    assert pairs(plan)["features.9.weight"] == "features.6.weight"


def test_meaningless_names_go_by_order_with_less_confidence() -> None:
    reference = contents("torch", *(linear(f"blocks.{n}.fc", 4, 4) for n in range(3)))
    port = contents("paddle", *(linear(name, 4, 4, "paddle") for name in ("x", "y", "z")))
    _, plan = drafted(reference, port)
    assert pairs(plan)["y.weight"] == "blocks.1.fc.weight"
    assert {entry.evidence for entry in plan.entries} == {("definition order",)}
    assert max(entry.confidence for entry in plan.entries) < 0.7


def test_neither_names_nor_order_is_ambiguous() -> None:
    a = ("a", "Linear", {"weight": (4, 4), "bias": (4,)})
    wide, odd = linear("b", 4, 8), linear("c", 8, 4)
    reference = contents("torch", a, wide, odd, linear("d", 4, 4), linear("e", 4, 6))
    port = contents(
        "paddle",
        linear("v", 4, 6, "paddle"), linear("w", 4, 4, "paddle"), linear("x", 8, 4, "paddle"),
        linear("y", 4, 8, "paddle"), linear("z", 4, 4, "paddle"),
    )  # fmt: skip
    _, plan = drafted(reference, port)
    assert not plan.complete
    assert set(plan.ambiguous[0].targets) == {"w", "z"}
    assert set(plan.ambiguous[0].candidates) == {"a", "d"}


def test_statistics_are_required_and_counters_are_not() -> None:
    names = {
        "weight": (3,),
        "bias": (3,),
        "running_mean": (3,),
        "running_var": (3,),
        "num_batches_tracked": (),
    }
    reference = contents("torch", ("bn", "BatchNorm2d", names))
    whole = {"weight": (3,), "bias": (3,), "_mean": (3,), "_variance": (3,)}
    _, plan = drafted(reference, contents("paddle", ("norm", "BatchNorm2d", whole)))
    assert pairs(plan)["norm._variance"] == "bn.running_var"
    assert plan.complete
    counters = "num_batches_tracked: 1 counter of the reference left out: used with momentum=None only"
    assert counters in plan.notes
    bare = {"weight": (3,), "bias": (3,)}
    _, plan = drafted(
        reference, contents("paddle", ("norm", "InstanceNorm2d", {"scale": (3,), "bias": (3,)}))
    )
    assert [item.path for item in plan.unmatched_reference] == ["bn.running_mean", "bn.running_var"]
    _, plan = drafted(
        contents("torch", ("bn", "LayerNorm", bare)), contents("paddle", ("n", "LayerNorm", bare))
    )
    assert plan.complete


def test_attention_is_taken_apart_only_when_needed() -> None:
    packed = contents(
        "torch",
        ("a", "MultiheadAttention", {"in_proj_weight": (12, 4), "in_proj_bias": (12,)}),
        ("a.out_proj", "Linear", {"weight": (4, 4), "bias": (4,)}),
    )
    (unit,) = read_units(packed)
    assert [part.path for part in parts_of(unit)] == ["a.q", "a.k", "a.v", "a.out"]
    names = ("q_proj", "k_proj", "v_proj", "out_proj")
    split = contents("paddle", *(linear(f"b.{name}", 4, 4, "paddle") for name in names))
    _, plan = drafted(packed, split)
    assert plan.complete
    assert pairs(plan)["b.k_proj.weight"] == "a.in_proj_weight"
    (entry,) = [entry for entry in plan.entries if entry.target == "b.v_proj.bias"]
    assert entry.rule == "part of a packed tensor"
    whole = contents(
        "paddle", ("b", "MultiheadAttention", {}), *(linear(f"b.{n}", 4, 4, "paddle") for n in names)
    )
    draft, plan = drafted(packed, whole)
    assert plan.complete
    assert list(draft.links) == ["b"]


def test_fused_without_values_stays_open() -> None:
    reference = contents("torch", linear("attn.qkv", 4, 12), linear("attn.proj", 4, 4))
    names = ("q_proj", "k_proj", "v_proj", "proj")
    port = contents("paddle", *(linear(f"attn.{name}", 4, 4, "paddle") for name in names))
    draft, plan = drafted(reference, port)
    assert len(draft.choices) == 1
    assert draft.choices[0].options[0].words == "fused q_proj, k_proj, v_proj, one after the other"
    assert pairs(plan)["attn.proj.weight"] == "attn.proj.weight"
    assert plan.ambiguous[0].targets == ("attn.q_proj", "attn.k_proj", "attn.v_proj")
    assert "ways to copy and none shown to be right" in plan.ambiguous[0].reason


def test_parts_with_other_biases_are_not_fused() -> None:
    reference = contents("torch", linear("attn.qkv", 4, 12))
    port = contents("paddle", *((f"attn.{n}", "Linear", {"weight": (4, 4)}) for n in ("q", "k", "v")))
    draft, plan = drafted(reference, port)
    assert not draft.choices
    assert not plan.complete


@pytest.mark.parametrize("shape", [(4, 4), (4, 6)], ids=["square", "oblong"])
def test_user_linear_with_its_own_layout(shape: tuple[int, int]) -> None:
    tensors = {"weight": shape, "bias": (shape[1],)}
    reference = contents("torch", ("c_proj", "Conv1D", tensors))
    port = contents("paddle", linear("proj", *shape, framework="paddle"))
    _, plan = drafted(reference, port)
    assert plan.complete is (shape == (4, 6))
    class_known = contents(
        "torch", ("c_proj", "Conv1D", tensors), ("c_attn", "Conv1D", {"weight": (4, 9), "bias": (9,)})
    )
    both = contents("paddle", linear("proj", *shape, framework="paddle"), linear("attn", 4, 9, "paddle"))
    _, plan = drafted(class_known, both)
    assert plan.complete
    assert {entry.rule for entry in plan.entries} == {"as it is"}


def test_a_bare_mapping_borrows_kinds_from_the_other_side() -> None:
    model = contents("torch", linear("fc", 4, 4), ("emb", "Embedding", {"weight": (4, 4)}))
    stored = contents("paddle", ("fc", "", {"weight": (4, 4), "bias": (4,)}), ("emb", "", {"weight": (4, 4)}))
    bare = SideContents("paddle", stored.stored, {path: Owner(path, None) for path in stored.owners})
    known = with_kinds(bare, model)
    assert known.owners["emb"].kind == "Embedding"
    _, plan = drafted(known, model)
    rules = {entry.target: entry.rule for entry in plan.entries}
    assert rules == {"fc.weight": "transposed", "fc.bias": "as it is", "emb.weight": "as it is"}
