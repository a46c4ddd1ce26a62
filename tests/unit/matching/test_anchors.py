"""Which modules correspond, as far as copied weights say."""

from __future__ import annotations

from parfocal.matching.anchors import Anchor, anchors_of, splits_of


def test_layers_blocks_and_the_root():
    copies = [
        ("a.0.weight", "x.first.weight"),
        ("a.0.bias", "x.first.bias"),
        ("a.1.weight", "x.second.weight"),
    ]
    assert anchors_of(copies) == [
        Anchor(("", "a"), ("", "x")),
        Anchor(("a.0",), ("x.first",)),
        Anchor(("a.1",), ("x.second",)),
    ]


def test_wrappers_around_the_same_weights_stand_together():
    (anchor,) = anchors_of([("model.wrapped.layer.weight", "layer.weight")])
    assert anchor == Anchor(("", "model", "model.wrapped", "model.wrapped.layer"), ("", "layer"))


def test_packed_and_split_projections_meet_in_the_module_around():
    copies = [
        ("attn.in_proj_weight", "attn.q.weight"),
        ("attn.in_proj_weight", "attn.k.weight"),
        ("attn.in_proj_weight", "attn.v.weight"),
        ("attn.out.weight", "attn.out.weight"),
    ]
    anchors = anchors_of(copies)
    assert Anchor(("", "attn"), ("", "attn")) in anchors
    assert Anchor(("attn.out",), ("attn.out",)) in anchors
    assert not any("attn.q" in anchor.port for anchor in anchors)
    # of an attention that owns the packed weight itself
    assert splits_of(copies) == [
        ("attn", "attn.k"), ("attn", "attn.q"), ("attn", "attn.v"),
    ]  # fmt: skip


def test_one_projection_against_three_and_the_other_way_round():
    copies = [("qkv.weight", f"{name}.weight") for name in "qkv"]
    assert splits_of(copies) == [("qkv", "k"), ("qkv", "q"), ("qkv", "v")]
    assert splits_of([(b, a) for a, b in copies]) == [("k", "qkv"), ("q", "qkv"), ("v", "qkv")]
    assert splits_of([("a.weight", "b.weight"), ("a.bias", "b.bias")]) == []


def test_re_nesting_leaves_layers_and_drops_blocks_that_hold_other_weights():
    copies = [("a.x.w", "p.w"), ("a.y.w", "q.r.w"), ("b.z.w", "q.s.w")]
    anchors = {anchor.reference[-1]: anchor.port[-1] for anchor in anchors_of(copies)}
    assert anchors["a.x"] == "p"
    assert anchors["a.y"] == "q.r"
    assert "a" not in anchors  # holds x and y; nothing in the port holds just these


def test_repeated_copies_count_once_and_nothing_gives_nothing():
    assert anchors_of([("a.w", "b.w"), ("a.w", "b.w")]) == [Anchor(("", "a"), ("", "b"))]
    assert anchors_of([]) == []


def test_weights_of_the_root_itself():
    assert anchors_of([("weight", "weight")]) == [Anchor(("",), ("",))]
