"""``parfocal describe MODEL [OTHER]``: the tree of a model, or of two side by side."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from parfocal.columns import width_of
from parfocal.phrases import joined, phrase, said

if TYPE_CHECKING:
    from rich.console import JustifyMethod

    from parfocal.workflow.description.model import ModelDescription, ModuleDescription, Shape
    from parfocal.workflow.description.pair import PairDescription, SideBySide

MODULE, KIND, LAYER = phrase("module"), phrase("kind"), phrase("layer")
TENSORS, PARAMETERS, CALLS = phrase("tensors"), phrase("parameters"), phrase("calls")
SHAPES, DIFFERS = phrase("input -> output"), phrase("differs")
NUMBERS = (PARAMETERS, CALLS)  # columns set to the right
WIDE = 400  # characters of a line in a pipe: what belongs together stays on one line


def describe(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="file.py:build or package.module:build.")],
    other: Annotated[
        str | None, typer.Argument(metavar="[PORT]", help="Its port, to see both side by side.")
    ] = None,
    described: Annotated[
        list[str] | None,
        typer.Option(
            "--input", "-i", help="A random input: x=float32[4,3,224,224]; without, nothing is run."
        ),
    ] = None,
    inputs: Annotated[
        Path | None, typer.Option("--inputs", help="Inputs from an .npz, .npy or .safetensors.")
    ] = None,
    depth: Annotated[
        int | None, typer.Option("--depth", min=0, help="Show modules down to this level; 0 is the model.")
    ] = None,
    mode: Annotated[str, typer.Option("--mode", help="eval, train or keep.")] = "eval",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of random inputs and weights.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show modules, settings, parameters and shapes. Exit status 0 shown, 2 a wrong call."""
    from parfocal.cli.loading import given_inputs, load_model
    from parfocal.workflow.description.model import describe_model
    from parfocal.workflow.description.pair import describe_pair

    given = given_inputs("describe", described, inputs, seed) if described or inputs else None
    first = load_model(model, "MODEL", seed)
    if other is None:
        found: Any = describe_model(first, given, mode=mode)  # type: ignore[arg-type]
    else:
        found = describe_pair(first, load_model(other, "PORT", seed), given, mode=mode)  # type: ignore[arg-type]
    if as_json:
        text = _model_json(found, depth) if other is None else _pair_json(found, depth)
        typer.echo(json.dumps(text, indent=2, default=str))
    elif other is None:
        _print_model(found, depth)
    else:
        _print_pair(found, depth)


def _is_shown(module: ModuleDescription | None, depth: int | None) -> bool:
    return module is not None and (depth is None or module.depth <= depth)


def _print_model(found: ModelDescription, depth: int | None) -> None:
    more = (CALLS, SHAPES) if found.ran else ()
    rows = [
        (
            _name(module, found),
            module.kind,
            _layer(module),
            _tensors(module),
            f"{module.parameters:,}",
            *((str(len(module.calls)), _calls(module)) if found.ran else ()),
        )
        for module in found.modules
        if _is_shown(module, depth)
    ]
    _print_table((MODULE, KIND, LAYER, TENSORS, PARAMETERS, *more), rows)
    told = phrase("{title}: {totals}", title=_title(found), totals=_totals(found))
    typer.echo(f"\n{said(told)}")


def _print_pair(found: PairDescription, depth: int | None) -> None:
    ran = found.reference.ran
    shapes = (SHAPES,) if ran else ()
    side = (LAYER, PARAMETERS, *shapes)
    rows = [
        (
            *_side(line.reference, found.reference, ran, again=line.part),
            *_side(line.port, found.port, ran, again=False),
            _difference(line),
        )
        for line in found.lines
        if _is_shown(line.reference, depth) or _is_shown(line.port, depth)
    ]
    _print_table((phrase("reference"), *side, phrase("port"), *side, DIFFERS), rows)
    paired = sum(
        line.reference is not None and line.port is not None and not line.part for line in found.lines
    )
    lines = [
        phrase("{side} {title}: {totals}", side=side_name, title=_title(model), totals=_totals(model))
        for side_name, model in ((phrase("reference"), found.reference), (phrase("port"), found.port))
    ]
    lines.append(
        phrase(
            "paired {paired} of {reference} and {port} modules",
            paired=paired,
            reference=len(found.reference.modules),
            port=len(found.port.modules),
        )
    )
    if not found.weights_agree:
        lines.append(
            phrase("not all weights correspond: without them modules are paired by kind and order alone")
        )
    typer.echo("\n" + "\n".join(map(said, lines)))


def _side(
    module: ModuleDescription | None, model: ModelDescription, ran: bool, *, again: bool
) -> tuple[str, ...]:
    if module is None or again:
        name = "" if module is None else f"{'  ' * module.depth}({module.path})"
        return (name, "", "", *([""] if ran else []))
    return (
        _name(module, model),
        _layer(module),
        f"{module.parameters:,}",
        *([_calls(module, counted=True)] if ran else []),
    )


def _difference(line: SideBySide) -> str:
    if line.reference is None:
        return phrase("port only")
    if line.port is None:
        return phrase("reference only")
    ours, theirs = line.reference.settings, line.port.settings
    told = [f"{name} {ours[name]} / {theirs[name]}" for name in line.settings]
    dtypes = [_dtypes(module) for module in (line.reference, line.port)]
    if dtypes[0] != dtypes[1] and all(dtypes) and not line.part:
        told.append(f"dtype {dtypes[0]} / {dtypes[1]}")
    return ", ".join(told)


def _dtypes(module: ModuleDescription) -> str:
    """Of its own parameters."""
    return ", ".join(sorted({each.dtype for each in module.tensors if each.role == "parameter"}))


def _name(module: ModuleDescription, model: ModelDescription) -> str:
    """Indented; lists that are never called count as a level like any other."""
    name = module.path.rpartition(".")[2] if module.path else model.class_name
    return f"{'  ' * module.depth}{name}"


def _layer(module: ModuleDescription) -> str:
    from parfocal.backends.vocabulary import CONVENTIONS

    told = {name: value for name, value in module.settings.items() if name not in CONVENTIONS}
    settings = ", ".join(f"{name}={value}" for name, value in told.items())
    written = settings if module.written is None else module.written
    return f"{module.class_name}({written})" if written else module.class_name


def _tensors(module: ModuleDescription) -> str:
    return joined(
        ", ",
        (
            phrase(
                "{name} {shape} {dtype}{tied}{buffer}",
                name=each.name,
                shape=_shape(each.shape),
                dtype=each.dtype,
                tied=f" = {each.tied_to}" if each.tied_to else "",
                buffer=phrase(" (buffer)") if each.role == "buffer" else "",
            )
            for each in module.tensors
        ),
    )


def _calls(module: ModuleDescription, *, counted: bool = False) -> str:
    """Every kind of call once."""
    forms = Counter(
        phrase(
            "{inputs} -> {outputs}",
            inputs=_shapes(call.inputs, call.input_dtypes),
            outputs=_shapes(call.outputs, call.output_dtypes),
        )
        for call in module.calls
    )
    if len(forms) == 1 and not counted:
        return next(iter(forms))
    return joined(
        "; ",
        (
            phrase("{count} times {form}", count=count, form=form) if count > 1 else form
            for form, count in forms.items()
        ),
    )


def _shapes(slots: Mapping[str, Shape], dtypes: Mapping[str, str]) -> str:
    told = (
        phrase("{shape} {dtype}", shape=_shape(shape), dtype=dtypes[slot]) for slot, shape in slots.items()
    )
    return joined(", ", told) or "-"


def _shape(shape: Shape) -> str:
    return "x".join(map(str, shape)) or phrase("scalar")


def _title(found: ModelDescription) -> str:
    return f"{found.class_name} ({found.framework} {found.version})"


def _totals(found: ModelDescription) -> str:
    totals = found.totals
    return phrase(
        "{modules} modules, {parameters} parameters ({trainable} trainable), "
        "{buffers} numbers in buffers{calls}",
        modules=f"{totals.modules:,}",
        parameters=f"{totals.parameters:,}",
        trainable=f"{totals.trainable:,}",
        buffers=f"{totals.buffers:,}",
        calls=phrase(", {calls} calls", calls=f"{totals.calls:,}") if found.ran else "",
    )


def _print_table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from parfocal.cli.console import make_console

    console = make_console(pipe_width=WIDE)
    names = max((width_of(said(row[0])) for row in rows), default=0)
    whole = 2 * names <= console.width  # the tree's own column is the last to be broken
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, title in enumerate(header):
        justify: JustifyMethod = "right" if title in NUMBERS else "left"
        table.add_column(said(title), justify=justify, overflow="fold", no_wrap=whole and number == 0)
    for row in rows:
        table.add_row(*(escape(said(cell)) for cell in row))
    console.print(table)


def _model_json(found: ModelDescription, depth: int | None) -> dict[str, Any]:
    told = asdict(found)
    told["modules"] = [asdict(module) for module in found.modules if _is_shown(module, depth)]
    return told


def _pair_json(found: PairDescription, depth: int | None) -> dict[str, Any]:
    return {
        "reference": _model_json(found.reference, depth),
        "port": _model_json(found.port, depth),
        "weights_agree": found.weights_agree,
        "lines": [
            {
                "reference": None if line.reference is None else line.reference.path,
                "port": None if line.port is None else line.port.path,
                "why": line.why,
                "part": line.part,
                "settings": {name: _both(line, name) for name in line.settings},
            }
            for line in found.lines
            if _is_shown(line.reference, depth) or _is_shown(line.port, depth)
        ],
    }


def _both(line: SideBySide, name: str) -> dict[str, Any]:
    assert line.reference is not None
    assert line.port is not None
    return {"reference": line.reference.settings[name], "port": line.port.settings[name]}
