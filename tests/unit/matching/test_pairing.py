"""Which call is which: under other names, nesting and order, and never a pair that is none."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parfocal.matching.anchors import anchors_of, splits_of
from parfocal.matching.pairing import pair_calls
from parfocal.matching.table import PairReason
from tests.unit.matching.traces import Does, trace


def paired(reference, port, copies=(), layers=None):
    """Paths of the paired calls, port's first: {port: (reference, gives)}."""
    pairing = pair_calls(reference, port, anchors_of(copies), layers)
    path = [node.path for node in reference.nodes]
    return {
        (port.nodes[pair.port].path, port.nodes[pair.port].occurrence): (
            path[pair.reference],
            None if pair.gives is None else path[pair.gives],
        )
        for pair in pairing.pairs
    }


def plain(reference, port, copies=(), layers=None):
    """Port's path -> reference's path."""
    return {key[0]: found[0] for key, found in paired(reference, port, copies, layers).items()}


def chain(*names, root="", **options):
    """Linear, ReLU, Linear under these names; tensors x, a, b, c."""
    first, second, third = names
    return trace(
        Does(root, "Net", ["x"], ["c"], [
            Does(first, "Linear", ["x"], ["a"]),
            Does(second, "ReLU", ["a"], ["a^"]),
            Does(third, "Linear", ["a^"], ["c"]),
        ])
    )  # fmt: skip


def test_a_trace_pairs_with_itself():
    same = chain("0", "1", "2")
    assert plain(same, same) == {"": "", "0": "0", "1": "1", "2": "2"}


def test_renamed_layers():
    copies = [("0.weight", "fc1.weight"), ("2.weight", "fc2.weight")]
    assert plain(chain("0", "1", "2"), chain("fc1", "act", "fc2"), copies) == {
        "": "", "fc1": "0", "act": "1", "fc2": "2",
    }  # fmt: skip


def test_another_nesting():
    nested = trace(
        Does("", "Net", ["x"], ["c"], [
            Does("body", "Body", ["x"], ["a^"], [
                Does("body.one", "Linear", ["x"], ["a"]),
                Does("body.two", "ReLU", ["a"], ["a^"]),
            ]),
            Does("tail", "Linear", ["a^"], ["c"]),
        ])
    )  # fmt: skip
    copies = [("0.weight", "body.one.weight"), ("2.weight", "tail.weight")]
    found = plain(chain("0", "1", "2"), nested, copies)
    assert found == {"": "", "body.one": "0", "body.two": "1", "tail": "2"}


def branches(order):
    inside = {
        "left": [Does("left.fc", "Linear", ["x"], ["l"]), Does("left.act", "ReLU", ["l"], ["l^"])],
        "right": [Does("right.fc", "Linear", ["x"], ["r"]), Does("right.act", "ReLU", ["r"], ["r^"])],
    }
    gives = {"left": "l^", "right": "r^"}
    return trace(
        Does("", "Net", ["x"], ["y"], [
            *(Does(name, "Branch", ["x"], [gives[name]], inside[name]) for name in order),
            Does("last", "Linear", ["s"], ["y"]),
        ])
    )  # fmt: skip


def test_parallel_branches_in_another_order():
    copies = [(f"{name}.fc.weight", f"{name}.fc.weight") for name in ("left", "right")]
    copies.append(("last.weight", "last.weight"))
    found = plain(branches(["left", "right"]), branches(["right", "left"]), copies)
    assert found == {
        path: path for path in ("", "left", "left.fc", "left.act", "right", "right.fc", "right.act", "last")
    }


def blocks(count, *, names="blocks.{}", wrong=""):
    """Repeated blocks whose tensors all have the same values: only weights and order can tell."""
    return trace(
        Does("", "Net", ["x"], [f"y{wrong}"], [
            Does(names.format(number), "Block", ["x"], ["x"], [
                Does(names.format(number) + ".fc", "Linear", ["x"], ["x"]),
                Does(names.format(number) + ".act", "GELU", ["x"], ["x"]),
            ])
            for number in range(count)
        ])
    )  # fmt: skip


def test_repeated_blocks_with_equal_values_pair_in_order():
    copies = [(f"blocks.{n}.fc.weight", f"layers.{n}.fc.weight") for n in range(4)]
    found = plain(blocks(4), blocks(4, names="layers.{}"), copies)
    assert found == {
        "": "",
        **{f"layers.{n}{part}": f"blocks.{n}{part}" for n in range(4) for part in ("", ".fc", ".act")},
    }


def test_repeated_calls_of_one_module_pair_in_order():
    def shared():
        return trace(
            Does("", "Net", ["x"], ["z"], [
                Does("fc", "Linear", ["x"], ["y"]), Does("act", "ReLU", ["y"], ["y^"]),
                Does("fc", "Linear", ["y^"], ["z"]), Does("act", "ReLU", ["z"], ["z^"]),
            ])
        )  # fmt: skip

    pairing = pair_calls(shared(), shared(), anchors_of([("fc.weight", "fc.weight")]))
    assert [(pair.reference, pair.port) for pair in pairing.pairs] == [(n, n) for n in range(5)]


def test_extra_identities_and_dropouts_stay_alone_and_disturb_nobody():
    port = trace(
        Does("", "Net", ["x"], ["c"], [
            Does("in", "Identity", ["x"], ["x"]),
            Does("fc1", "Linear", ["x"], ["a"]),
            Does("act", "ReLU", ["a"], ["a^"]),
            Does("drop", "Dropout", ["a^"], ["a^"]),
            Does("fc2", "Linear", ["a^"], ["c"]),
        ])
    )  # fmt: skip
    copies = [("0.weight", "fc1.weight"), ("2.weight", "fc2.weight")]
    pairing = pair_calls(chain("0", "1", "2"), port, anchors_of(copies))
    assert plain(chain("0", "1", "2"), port, copies) == {"": "", "fc1": "0", "act": "1", "fc2": "2"}
    assert [port.nodes[order].path for order in pairing.unpaired_port] == ["in", "drop"]
    assert pairing.unpaired_reference == ()
    turned = pair_calls(port, chain("0", "1", "2"), anchors_of([(b, a) for a, b in copies]))
    assert [port.nodes[order].path for order in turned.unpaired_reference] == ["in", "drop"]


def fused(norm="BatchNorm2d", activation="relu"):
    return trace(
        Does("", "Net", ["x"], ["c"], [
            Does("0", norm, ["x"], ["a^"], activation=activation),
            Does("2", "Linear", ["a^"], ["c"]),
        ])
    )  # fmt: skip


FUSED_COPIES = [("0.weight", "0.weight"), ("2.weight", "2.weight")]
# a layer that says that it applies an activation, and a class of the user's that does not say
FUSING = [("BatchNorm2d", "relu"), ("BatchNormAct2d", None)]


@pytest.mark.parametrize(("norm", "activation"), FUSING)
def test_a_layer_of_the_port_that_applies_the_activation_too(norm, activation):
    reference, port = chain("0", "1", "2"), fused(norm, activation)
    found = paired(reference, port, FUSED_COPIES)
    assert found[("0", 0)] == ("0", "1")  # takes what the norm takes, gives what the activation gives
    assert pair_calls(reference, port, anchors_of(FUSED_COPIES)).unpaired_reference == ()


@pytest.mark.parametrize(("norm", "activation"), FUSING)
def test_a_layer_of_the_reference_that_applies_the_activation_too(norm, activation):
    port = chain("0", "1", "2")
    pairing = pair_calls(fused(norm, activation), port, anchors_of(FUSED_COPIES))
    by_path = {port.nodes[pair.port].path: pair for pair in pairing.pairs}
    assert (by_path["0"].gives, by_path["0"].takes) == (None, True)  # its run goes on
    assert (by_path["1"].gives, by_path["1"].takes) == (1, False)  # and ends here
    assert by_path["1"].reference == 1
    assert pairing.unpaired_port == ()


def test_a_plain_layer_that_gives_something_else_is_wrong_and_not_fused():
    found = paired(chain("0", "1", "2"), fused(activation=None), FUSED_COPIES)
    assert found[("0", 0)] == ("0", "0")


def test_a_wrong_layer_is_not_taken_for_a_fused_one():
    port = trace(
        Does("", "Net", ["x"], ["c!"], [
            Does("0", "BatchNorm2d", ["x"], ["a!"]), Does("1", "ReLU", ["a!"], ["a!^"]),
            Does("2", "Linear", ["a!^"], ["c!"]),
        ])
    )  # fmt: skip
    found = paired(chain("0", "1", "2"), port, FUSED_COPIES)
    assert found == {("", 0): ("", ""), ("0", 0): ("0", "0"), ("1", 0): ("1", "1"), ("2", 0): ("2", "2")}


def test_after_the_first_divergence_structure_carries_on():
    kinds = ("Linear", "ReLU", "GELU", "Dropout")

    def deep(mark):
        return trace(
            Does("", "Net", ["x"], [f"c4{mark}"], [
                Does(f"{n}", kinds[n % 4], [f"c{n}{mark}"], [f"c{n + 1}{mark}"]) for n in range(8)
            ])
        )  # fmt: skip

    found = plain(deep(""), deep("!"), [("0.weight", "0.weight"), ("4.weight", "4.weight")])
    assert found == {path: path for path in ("", *map(str, range(8)))}


def healing(first, rest, kind="Linear"):
    return trace(
        Does("", "Net", ["x"], [f"y9{rest}"], [
            Does("0", kind, ["x"], [first]),
            *(Does(str(n), "Linear", [f"y{n}{rest}"], [f"y{n + 1}{rest}"]) for n in range(1, 9)),
        ])
    )  # fmt: skip


HEALING_COPIES = [(f"{n}.weight", f"{n}.weight") for n in range(9)]


def test_a_difference_that_heals_is_only_another_division_of_work():
    found = paired(healing("y1", ""), healing("y1^", "~", "OwnLinear"), HEALING_COPIES)
    assert found[("0", 0)] == ("0", None)
    assert found[("1", 0)] == ("1", "1")


def test_between_two_plain_layers_of_a_framework_a_difference_is_a_mistake_though_it_heals():
    found = paired(healing("y1", ""), healing("y1^", "~"), HEALING_COPIES)
    assert found[("0", 0)] == ("0", "0")


def test_a_mistake_does_not_heal():
    found = paired(healing("y1", ""), healing("y1!", "!", "OwnLinear"), HEALING_COPIES)
    assert all(given == reference for reference, given in found.values())


def test_containers_that_do_different_jobs_are_not_a_pair():
    def dense(gives):
        return trace(
            Does("", "Net", ["x"], ["y"], [
                Does("block", "Dense", ["x"], [gives], [Does("block.fc", "Linear", ["x"], ["a"])]),
                Does("last", "Linear", ["b"], ["y"]),
            ])
        )  # fmt: skip

    copies = [("block.fc.weight", "block.fc.weight"), ("last.weight", "last.weight")]
    found = plain(dense("a"), dense("xa:96"), copies)
    assert found == {"": "", "block.fc": "block.fc", "last": "last"}
    assert "block" in plain(dense("a"), dense("a~"), copies)


def test_of_two_containers_around_the_same_layers_the_one_with_the_same_values_wins():
    reference = trace(
        Does("", "Net", ["x"], ["sum"], [
            Does("outer", "Residual", ["x"], ["sum"], [
                Does("outer.block", "Sequential", ["x"], ["a"], [
                    Does("outer.block.0", "Linear", ["x"], ["a"]),
                ]),
            ])
        ])
    )  # fmt: skip
    port = trace(
        Does("", "Net", ["x"], ["sum"], [
            Does("unit", "Unit", ["x"], ["sum"], [Does("unit.fc", "Linear", ["x"], ["a"])])
        ])
    )  # fmt: skip
    found = plain(reference, port, [("outer.block.0.weight", "unit.fc.weight")])
    assert found["unit"] in ("outer", "")  # both give the sum; never the inner block, which does not
    assert found["unit.fc"] == "outer.block.0"


def attention_and_norm(*, norm_inside: bool, wrong: str = "", gives: str | None = None):
    """A block whose norm is called by its attention, or by the block itself."""
    layers = [Does(f"b.a.{name}", "Linear", ["x"], [name + wrong]) for name in ("q", "k", "v")]
    norm = Does("b.a.norm" if norm_inside else "b.norm", "LayerNorm", ["v" + wrong], ["n" + wrong])
    given = gives or ("n" if norm_inside else "v") + wrong
    attention = Does("b.a", "Attend", ["x"], [given], [*layers, *([norm] if norm_inside else [])])
    block = Does("b", "Block", ["x"], ["n" + wrong], [attention, *([] if norm_inside else [norm])])
    return trace(Does("", "Net", ["x"], ["n" + wrong], [block]))


BY_WEIGHTS = [*((f"b.a.{name}.weight", f"b.a.{name}.weight") for name in "qkv")]


@pytest.mark.parametrize("wrong", ["", "!"])
def test_blocks_that_are_cut_otherwise_are_no_pair_whatever_the_values(wrong):
    copies = [*BY_WEIGHTS, ("b.a.norm.weight", "b.norm.weight")]
    reference = attention_and_norm(norm_inside=True)
    found = plain(reference, attention_and_norm(norm_inside=False, wrong=wrong), copies)
    assert "b.a" not in found
    assert found["b"] == "b"
    assert found["b.norm"] == "b.a.norm"


@pytest.mark.parametrize("wrong", ["", "!"])
def test_blocks_that_hold_the_same_layers_are_a_pair_though_they_give_something_else(wrong):
    copies = [*BY_WEIGHTS, ("b.a.norm.weight", "b.a.norm.weight")]
    reference = attention_and_norm(norm_inside=True)
    port = attention_and_norm(norm_inside=True, wrong=wrong, gives="else")
    assert plain(reference, port, copies)["b.a"] == "b.a"


def test_a_layer_that_does_the_work_of_three_is_not_the_block_around_the_three():
    parts = [Does(f"b.{name}", "Linear", ["x"], [name]) for name in ("q", "k", "v")]
    reference = trace(Does("", "Net", ["x"], ["y"], [Does("b", "Attend", ["x"], ["y"], parts)]))
    whole = Does("b.qkv", "Linear", ["x"], ["qkv:144"])
    port = trace(Does("", "Net", ["x"], ["y!"], [Does("b", "Attend", ["x"], ["y!"], [whole])]))
    copies = [(f"b.{name}.weight", "b.qkv.weight") for name in ("q", "k", "v")]
    pairing = pair_calls(reference, port, anchors_of(copies), None, splits_of(copies))
    (found,) = [pair for pair in pairing.pairs if port.nodes[pair.port].path == "b.qkv"]
    assert (found.why, found.gives, found.whole) == (PairReason.SHARED_WEIGHTS, None, False)
    single = trace(Does("", "Net", ["x"], ["y!"], [Does("b", "Linear", ["x"], ["y!"])]))
    alone = [(f"b.{name}.weight", "b.weight") for name in ("q", "k", "v")]
    assert plain(reference, single, alone)["b"] == "b"


def test_a_dropout_that_is_off_does_not_stand_for_an_activation():
    def block(second, *calls):
        first, last = Does("1", "Linear", ["x"], ["a!"]), Does(second, "Linear", ["a^!"], ["y!"])
        return trace(Does("", "Net", ["x"], ["y!"], [first, *calls, last]))

    copies = [("1.weight", "1.weight"), ("3.weight", "3.weight")]
    reference = block("3", Does("2", "GELU", ["a"], ["a^"]))
    assert "drop" not in plain(reference, block("3", Does("drop", "Dropout", ["a^!"], ["a^!"])), copies)
    assert plain(reference, block("3", Does("act", "ReLU", ["a!"], ["a^!"])), copies)["act"] == "2"
    forgotten = block("3", Does("act", "Identity", ["a"], ["a"]))
    assert plain(reference, forgotten, copies)["act"] == "2"


def test_wrong_pairs_are_not_made():
    reference = trace(
        Does("", "Net", ["x"], ["c"], [Does("a", "ReLU", ["x"], ["x^"]), Does("b", "Linear", ["x^"], ["c"])])
    )
    port = trace(
        Does(
            "",
            "Net",
            ["x"],
            ["c"],
            [Does("p", "Conv2d", ["x"], ["q:96"]), Does("b", "Linear", ["x^"], ["c"])],
        )
    )
    pairing = pair_calls(reference, port, anchors_of([("b.weight", "b.weight")]))
    assert [reference.nodes[n].path for n in pairing.unpaired_reference] == ["a"]
    assert [port.nodes[n].path for n in pairing.unpaired_port] == ["p"]


def test_equal_values_of_another_kind_need_equal_inputs():
    reference = trace(
        Does("", "Net", ["x"], ["c"], [Does("a", "ReLU", ["x"], ["h"]), Does("z", "Linear", ["h"], ["c"])])
    )
    port = trace(Does("", "Net", ["x"], ["c"], [
        Does("z", "Linear", ["h"], ["c"]), Does("other", "GELU", ["unrelated:7"], ["h"]),
    ]))  # fmt: skip
    assert "other" not in plain(reference, port, [("z.weight", "z.weight")])


def test_nothing_in_common_gives_no_pairs_of_leaves():
    reference = trace(Does("", "Net", ["x"], ["c"], [Does("a", "Linear", ["x"], ["c"])]))
    port = trace(Does("", "Net", ["x:7"], ["d:9"], [Does("b", "Conv2d", ["x:7"], ["d:9"])]))
    assert plain(reference, port) == {"": ""}


def test_the_models_stand_for_each_other_however_deep_the_work_is():
    """Also where the port gives something else, and a module inside the reference has all the weights."""
    body = Does("m.body", "Body", ["x"], ["h"], [Does("m.body.a", "Linear", ["x"], ["h"])])
    head = Does("m.head", "Linear", ["h"], ["c"])
    reference = trace(Does("", "Wrap", ["x"], ["c"], [Does("m", "Net", ["x"], ["c"], [body, head])]))
    port = trace(Does("", "Net", ["x"], ["d:9"], [Does("a", "Linear", ["x"], ["h"])]))
    assert plain(reference, port, [("m.body.a.weight", "a.weight")]) == {"": "", "a": "m.body.a"}


def test_a_model_of_a_single_layer_stands_for_the_layer_with_its_weights():
    reference = trace(Does("", "Linear", ["x"], ["c"]))
    port = trace(Does("", "Net", ["x"], ["c"], [Does("fc", "Linear", ["x"], ["c"])]))
    assert plain(reference, port, [("weight", "fc.weight")]) == {"fc": ""}


def test_the_user_s_own_word_wins_over_weights():
    copies = [("0.weight", "fc1.weight"), ("2.weight", "fc2.weight")]
    found = plain(chain("0", "1", "2"), chain("fc1", "act", "fc2"), copies, {"0": "fc2"})
    assert found["fc2"] == "0"
    assert found.get("fc1") != "0"


def test_what_a_paired_layer_of_the_framework_does_inside_is_its_own_business():
    reference = trace(Does("", "Net", ["x"], ["y"], [Does("attn", "Attention", ["x"], ["y"])]))
    port = trace(
        Does("", "Net", ["x"], ["y"], [
            Does("attn", "Attention", ["x"], ["y"], [
                Does("attn.q", "Linear", ["x"], ["q"]), Does("attn.o", "Linear", ["q"], ["y"]),
            ]),
        ])
    )  # fmt: skip
    copies = [("attn.in_proj_weight", "attn.q.weight"), ("attn.out_weight", "attn.o.weight")]
    pairing = pair_calls(reference, port, anchors_of(copies))
    assert plain(reference, port, copies)["attn"] == "attn"
    assert pairing.unpaired_port == ()


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(6)), st.integers(0, 10))
def test_names_do_not_matter(order, seed):
    """Whatever six layers are called, weights and values lead to the same pairs."""
    kinds = ("Linear", "ReLU", "Linear", "GELU", "Linear", "ReLU")

    def net(names):
        return trace(
            Does("", "Net", [f"t{seed}.0"], [f"t{seed}.6"], [
                Does(names[n], kind, [f"t{seed}.{n}"], [f"t{seed}.{n + 1}"]) for n, kind in enumerate(kinds)
            ])
        )  # fmt: skip

    names = [f"layer{number}" for number in order]
    copies = [(f"{n}.weight", f"{names[n]}.weight") for n in (0, 2, 4)]
    found = plain(net([str(n) for n in range(6)]), net(names), copies)
    assert found == {"": "", **{name: str(n) for n, name in enumerate(names)}}


def pooled(kind, pooled, result, last="c"):
    """Convolution, a layer without weights that changes the size, convolution."""
    return trace(
        Does("", "Net", ["x"], [result], [
            Does("one", "Conv2d", ["x"], ["a"]),
            Does("pool", kind, ["a"], [pooled]),
            Does("two", "Conv2d", [pooled], [last]),
        ])
    )  # fmt: skip


CONVOLUTIONS = [("one.weight", "one.weight"), ("two.weight", "two.weight")]


@pytest.mark.parametrize(("kind", "is_pair"), [("GELU", True), ("ReLU", False), ("Mine", False)])
def test_a_layer_of_another_size_is_known_by_its_input_and_kind(kind, is_pair):
    right, wrong = pooled("GELU", "p:12", "c"), pooled(kind, "p:20", "d:30", "d:30")
    assert ("pool" in plain(right, wrong, CONVOLUTIONS)) == is_pair


def test_a_size_that_is_cut_right_again_is_not_judged():
    """The port's layer gives more, its code crops, and all that comes later is the same."""
    right = pooled("GELU", "p:12", "c")
    cropped = trace(
        Does("", "Net", ["x"], ["c"], [
            Does("one", "Conv2d", ["x"], ["a"]),
            Does("pool", "GELU", ["a"], ["p:20"]),
            Does("two", "Conv2d", ["p:12"], ["c"]),
        ])
    )  # fmt: skip
    assert paired(right, cropped, CONVOLUTIONS)["pool", 0] == ("pool", None)


def test_layers_that_share_the_work_are_none_of_another_size():
    """One projection for three against three of their own: they take the same and give parts."""
    one = trace(Does("", "Net", ["x"], ["q"], [Does("qkv", "Linear", ["x"], ["qkv:144"])]))
    parts = [Does(name, "Linear", ["x"], [name]) for name in ("q", "k", "v")]
    three = trace(Does("", "Net", ["x"], ["q"], parts))
    splits = [("qkv", name) for name in ("q", "k", "v")]
    pairing = pair_calls(one, three, [], splits=splits)
    assert all(not pair.whole for pair in pairing.pairs if three.nodes[pair.port].path)


class CountedPath(str):
    """A path that counts how often it is looked up or compared by its hash."""

    hashed = 0

    def __hash__(self) -> int:
        CountedPath.hashed += 1
        return super().__hash__()


@pytest.mark.parametrize("count", [20, 80])
def test_many_fused_layers_are_looked_up_a_few_times_each(count):
    one, three, splits = [], [], []
    for number in range(count):
        x, q, k, v, y = (f"{name}{number}" for name in "xqkvy")
        one.append(Does(f"{number}.qkv", "Linear", [x], [f"{q}{k}{v}:144"]))
        three += [Does(f"{number}.{name}", "Linear", [x], [name + str(number)]) for name in "qkv"]
        one.append(Does(f"{number}.out", "Linear", [v], [y]))
        three.append(Does(f"{number}.out", "Linear", [v], [y]))
        splits += [(CountedPath(f"{number}.qkv"), CountedPath(f"{number}.{name}")) for name in "qkv"]
    CountedPath.hashed = 0
    pairing = pair_calls(trace(*one), trace(*three), [], splits=splits)
    assert {(pair.reference, pair.port) for pair in pairing.pairs if not pair.whole}
    assert CountedPath.hashed <= 12 * len(splits)
