"""Conversion from file to file by a template: nothing but names and shapes to go by."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import parfocal as pf
from parfocal.errors import FileFormatError, InputError, TransferError
from parfocal.weights.checkpoints.reading import load_checkpoint
from parfocal.weights.plan import Entry, Plan
from tests.unit.weights.checkpoints.files import dumped, same, write

State = dict[str, Any]


def numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype("float32")


def zeros(state: State, turned: tuple[str, ...] = ()) -> State:
    return {name: np.zeros_like(array.T if name in turned else array) for name, array in state.items()}


def converted(folder: Path, state: State, template: State, **options: Any) -> tuple[Plan, State]:
    source = write(folder / "in.pth", state)
    shape = write(folder / "template.pdparams", template)
    plan = pf.convert(source, shape, folder / "out.pdparams", **options)
    found = load_checkpoint(folder / "out.pdparams").tensors
    return plan, {name: tensor.read() for name, tensor in found.items()}


def test_shapes_say_what_is_transposed(tmp_path: Path) -> None:
    state = {
        "embed.weight": numbers(10, 6),
        "fc.weight": numbers(4, 6),
        "fc.bias": numbers(4),
        "norm.weight": numbers(6),
        "conv.weight": numbers(3, 3, 2, 2),
    }
    plan, found = converted(tmp_path, state, zeros(state, turned=("fc.weight",)))
    assert plan.complete
    assert same(found["fc.weight"], np.ascontiguousarray(state["fc.weight"].T))
    assert all(same(found[name], state[name]) for name in state if name != "fc.weight")


def test_batch_norm_statistics_and_counters(tmp_path: Path) -> None:
    state = {
        "bn.weight": numbers(3),
        "bn.bias": numbers(3, seed=1),
        "bn.running_mean": numbers(3, seed=2),
        "bn.running_var": numbers(3, seed=3),
        "bn.num_batches_tracked": np.array(5),
    }
    template = {f"bn.{name}": np.zeros(3, "float32") for name in ("weight", "bias", "_mean", "_variance")}
    plan, found = converted(tmp_path, state, template)
    assert same(found["bn._mean"], state["bn.running_mean"])
    assert same(found["bn._variance"], state["bn.running_var"])
    assert any("num_batches_tracked" in note for note in plan.notes)


def test_the_way_back_keeps_the_templates_counters(tmp_path: Path) -> None:
    names = ("weight", "bias", "_mean", "_variance")
    source = write(
        tmp_path / "in.pdparams", {f"bn.{name}": numbers(3, seed=n) for n, name in enumerate(names)}
    )
    template = {
        f"bn.{name}": np.zeros(3, "float32") for name in ("weight", "bias", "running_mean", "running_var")
    }
    template["bn.num_batches_tracked"] = np.array(9)
    plan = pf.convert(source, write(tmp_path / "template.pth", template), tmp_path / "out.pth")
    found = load_checkpoint(tmp_path / "out.pth").tensors
    assert list(found) == list(template)
    assert found["bn.num_batches_tracked"].read() == 9
    assert same(found["bn.running_var"].read(), numbers(3, seed=3))
    assert "written as they are in the template: bn.num_batches_tracked" in plan.notes


def test_packed_attention_against_separate_projections(tmp_path: Path) -> None:
    state = {
        "attn.in_proj_weight": numbers(18, 6),
        "attn.in_proj_bias": numbers(18),
        "attn.out_proj.weight": numbers(6, 6),
        "attn.out_proj.bias": numbers(6),
    }
    template = {}
    for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
        template |= {
            f"attn.{name}.weight": np.zeros((6, 6), "float32"),
            f"attn.{name}.bias": np.zeros(6, "float32"),
        }
    _, found = converted(tmp_path, state, template)
    for number, name in enumerate(("q_proj", "k_proj", "v_proj")):
        rows = slice(6 * number, 6 * number + 6)
        assert same(found[f"attn.{name}.weight"], np.ascontiguousarray(state["attn.in_proj_weight"][rows].T))
        assert same(found[f"attn.{name}.bias"], state["attn.in_proj_bias"][rows])
    assert same(found["attn.out_proj.weight"], np.ascontiguousarray(state["attn.out_proj.weight"].T))


def test_recurrent_layers_are_written_under_both_names(tmp_path: Path) -> None:
    state = {
        "rnn.weight_ih_l0": numbers(16, 3),
        "rnn.weight_hh_l0": numbers(16, 4),
        "rnn.bias_ih_l0": numbers(16),
        "rnn.bias_hh_l0": numbers(16, seed=1),
    }
    template = zeros(state)
    template |= {f"rnn.0.cell.{name.split('.')[1][:-3]}": array for name, array in zeros(state).items()}
    _, found = converted(tmp_path, state, template)
    for name, array in state.items():
        assert same(found[name], array)
        assert same(found[f"rnn.0.cell.{name.split('.')[1][:-3]}"], array)


# Squares.


def test_a_square_weight_with_a_bias_is_a_linear(tmp_path: Path) -> None:
    state = {"a.weight": numbers(4, 4), "a.bias": numbers(4)}
    _, found = converted(tmp_path, state, zeros(state))
    assert same(found["a.weight"], np.ascontiguousarray(state["a.weight"].T))


def test_a_square_weight_follows_the_others_around_it(tmp_path: Path) -> None:
    state = {
        "table.embedding.weight": numbers(9, 4),
        "blocks.0.x.weight": numbers(4, 4),
        "blocks.0.y.weight": numbers(8, 4),
        "blocks.1.x.weight": numbers(4, 4, seed=1),
        "blocks.1.y.weight": numbers(8, 4, seed=1),
        "table.position.weight": numbers(4, 4, seed=2),
    }
    turned = ("blocks.0.y.weight", "blocks.1.y.weight")
    plan, found = converted(tmp_path, state, zeros(state, turned))
    assert plan.complete
    for name, array in state.items():
        expected = array if name.startswith("table") else np.ascontiguousarray(array.T)
        assert same(found[name], expected), name


def test_a_square_weight_that_nothing_decides_is_ambiguous(tmp_path: Path) -> None:
    state = {"a.weight": numbers(4, 4), "b.weight": numbers(4, 4, seed=1)}
    with pytest.raises(TransferError) as caught:
        converted(tmp_path, state, zeros(state))
    assert not (tmp_path / "out.pdparams").exists()
    assert caught.value.message.startswith("2 problems; nothing was written")
    assert "a.weight as it is, a.weight transposed" in caught.value.message
    assert "no other weight tells" in caught.value.message
    assert isinstance(caught.value.plan, Plan)
    assert len(caught.value.plan.ambiguous) == 2


def test_others_that_disagree_leave_a_square_weight_ambiguous(tmp_path: Path) -> None:
    state = {"m.a.weight": numbers(4, 4), "m.b.weight": numbers(4, 8), "m.c.weight": numbers(4, 9)}
    with pytest.raises(TransferError, match="some transposed, some not"):
        converted(tmp_path, state, zeros(state, turned=("m.b.weight",)))


def test_within_one_framework_nothing_is_ambiguous(tmp_path: Path) -> None:
    state = {"a.weight": numbers(4, 4), "b.weight": numbers(4, 7)}
    source = write(tmp_path / "in.pth", state)
    plan = pf.convert(source, write(tmp_path / "t.safetensors", zeros(state)), tmp_path / "out.safetensors")
    found = load_checkpoint(tmp_path / "out.safetensors")
    assert plan.complete
    assert found.framework == "torch"
    assert all(same(found.tensors[name].read(), array) for name, array in state.items())


def test_an_edited_plan_decides(tmp_path: Path) -> None:
    state = {"a.weight": numbers(4, 4), "b.weight": numbers(4, 4, seed=1)}
    with pytest.raises(TransferError) as caught:
        converted(tmp_path, state, zeros(state))
    assert isinstance(caught.value.plan, Plan)
    saved = tmp_path / "plan.json"
    caught.value.plan.save(saved)
    document = json.loads(saved.read_text())
    for entry in document["entries"]:
        turn = entry["source"] == "a.weight"
        entry["source_view"], entry["target_view"] = ([["transpose", 1, 0]] if turn else []), []
    saved.write_text(json.dumps(document))
    plan, found = converted(tmp_path, state, zeros(state), plan=saved)
    assert plan.complete
    assert same(found["a.weight"], np.ascontiguousarray(state["a.weight"].T))
    assert same(found["b.weight"], state["b.weight"])


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (
            Entry("nothing", "a.weight"),
            r"entry 0 \(nothing -> a\.weight\): the checkpoint has no tensor 'nothing'",
        ),
        (Entry("a.weight", "nothing"), "the template has no tensor 'nothing'"),
        (Entry("b.weight", "a.weight"), r"the source view has shape \[4, 5\], the target view \[4, 4\]"),
    ],
)
def test_plans_that_do_not_fit(tmp_path: Path, entry: Entry, words: str) -> None:
    state = {"a.weight": numbers(4, 4), "b.weight": numbers(4, 5)}
    with pytest.raises(InputError, match=words):
        converted(tmp_path, state, zeros(state, turned=("b.weight",)), plan=Plan(entries=(entry,)))


def test_a_plan_with_a_hole_is_refused(tmp_path: Path) -> None:
    state = {"a.weight": numbers(4, 4), "b.weight": numbers(4, 5)}
    plan = Plan(entries=(Entry("a.weight", "a.weight"),))
    with pytest.raises(TransferError, match=r"b\.weight \[4, 5\]: the plan writes 0 of its 20 elements"):
        converted(tmp_path, state, zeros(state), plan=plan)


# Names.


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "module._orig_mod.", "model.", "backbone."])
def test_prefixes_are_taken_off(tmp_path: Path, prefix: str) -> None:
    state = {"embed.weight": numbers(10, 6), "fc.weight": numbers(4, 6), "fc.bias": numbers(4)}
    longer = {prefix + name: array for name, array in state.items()}
    _, found = converted(tmp_path, longer, zeros(state, turned=("fc.weight",)))
    assert same(found["embed.weight"], state["embed.weight"])
    assert same(found["fc.weight"], np.ascontiguousarray(state["fc.weight"].T))


def test_a_prefix_that_the_template_has_stays(tmp_path: Path) -> None:
    state = {"module.fc.weight": numbers(4, 6), "module.fc.bias": numbers(4)}
    plan, _ = converted(tmp_path, state, zeros(state, turned=("module.fc.weight",)))
    assert {entry.source for entry in plan.entries} == set(state)
    assert not plan.notes


def test_unmatched_tensors_are_named_on_both_sides(tmp_path: Path) -> None:
    state = {"fc.weight": numbers(4, 6), "old.weight": numbers(7, 9)}
    template = {"fc.weight": np.zeros((6, 4), "float32"), "new.bias": np.zeros(5, "float32")}
    with pytest.raises(TransferError) as caught:
        converted(tmp_path, state, template)
    assert "unmatched in the reference: old.weight [7, 9]" in caught.value.message
    assert "unmatched in the port: new.bias [5]" in caught.value.message
    assert sorted(os.listdir(tmp_path)) == ["in.pth", "template.pdparams"]


def test_partial_keeps_the_templates_values(tmp_path: Path) -> None:
    state = {"fc.weight": numbers(4, 6), "old.weight": numbers(7, 9)}
    template = {"fc.weight": np.zeros((6, 4), "float32"), "new.bias": np.full(5, 3, "float32")}
    plan, found = converted(tmp_path, state, template, partial=True)
    assert not plan.complete
    assert same(found["fc.weight"], np.ascontiguousarray(state["fc.weight"].T))
    assert found["new.bias"].tolist() == [3] * 5
    assert "written as they are in the template: new.bias" in plan.notes


def test_dtypes_are_the_templates_and_casts_are_noted(tmp_path: Path) -> None:
    state = {"fc.weight": numbers(4, 6)}
    template = {"fc.weight": np.zeros((6, 4), "float16")}
    plan, found = converted(tmp_path, state, template)
    assert same(found["fc.weight"], np.ascontiguousarray(state["fc.weight"].T.astype("float16")))
    assert "converted from float32 to float16: fc.weight" in plan.notes


def test_a_format_of_the_other_framework_is_refused(tmp_path: Path) -> None:
    state = {"fc.weight": numbers(4, 6)}
    source = write(tmp_path / "in.pth", state)
    template = write(tmp_path / "t.pdparams", zeros(state))
    with pytest.raises(InputError, match=r"a \.pth file is torch's, and the port or template is paddle's"):
        pf.convert(source, template, tmp_path / "out.pth")


def test_a_hostile_template_is_refused(tmp_path: Path) -> None:
    from tests.unit.run.hostile import MARKER, samples

    source = write(tmp_path / "in.pth", {"w": numbers(2)})
    (tmp_path / "t.pdparams").write_bytes(samples()["os.system"][0])
    with pytest.raises(FileFormatError, match=r"posix\.system"):
        pf.convert(source, tmp_path / "t.pdparams", tmp_path / "out.pdparams")
    assert not Path(MARKER).exists()


def test_the_oldest_protocol_is_converted(tmp_path: Path) -> None:
    state = {"embed.weight": numbers(600, 4), "fc.weight": numbers(300, 40)}
    source = tmp_path / "in.pdparams"
    source.write_bytes(dumped(state, 2))
    template = write(tmp_path / "t.pth", zeros(state, turned=("fc.weight",)))
    pf.convert(source, template, tmp_path / "out.pth")
    found = load_checkpoint(tmp_path / "out.pth").tensors
    assert same(found["embed.weight"].read(), state["embed.weight"])
    assert same(found["fc.weight"].read(), np.ascontiguousarray(state["fc.weight"].T))


@pytest.mark.parametrize("ending", [".pth", ".pdparams", ".safetensors"])
def test_memory_is_a_few_tensors_not_a_file(tmp_path: Path, ending: str) -> None:
    import tracemalloc

    state = {f"layers.{layer}.weight": numbers(1000, 1500, seed=layer) for layer in range(6)}
    largest = 1000 * 1500 * 4
    framework = "paddle" if ending == ".pdparams" else "torch"
    other = ".pth" if framework == "paddle" else ".pdparams"
    source = write(tmp_path / f"in{ending}", state, framework)
    template = write(tmp_path / f"t{other}", zeros(state, turned=tuple(state)))
    del state
    pf.convert(source, template, tmp_path / f"warm{other}")
    tracemalloc.start()
    pf.convert(source, template, tmp_path / f"out{other}")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert largest < peak < 3 * largest


def test_the_source_may_be_overwritten(tmp_path: Path) -> None:
    state = {"fc.weight": numbers(400, 60)}
    source = write(tmp_path / "model.pth", state)
    pf.convert(source, write(tmp_path / "t.pth", zeros(state)), source)
    assert same(load_checkpoint(source).tensors["fc.weight"].read(), state["fc.weight"])


def test_no_framework_is_needed(tmp_path: Path) -> None:
    state = {"fc.weight": numbers(4, 6)}
    write(tmp_path / "in.pth", state)
    write(tmp_path / "t.pdparams", zeros(state, turned=("fc.weight",)))
    code = (
        "import sys; sys.modules['torch'] = sys.modules['paddle'] = None\n"
        "import parfocal as pf\n"
        "print(pf.convert('in.pth', 't.pdparams', 'out.pdparams').complete)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("True", "")
