"""``convert``: a checkpoint file of one framework becomes one of the other, tensor by tensor.

The port, or a template file, says what the result must look like. Names, shapes and kinds are
matched as in ``transfer``; the values then go from file to file without a model and without ever
being in memory all at once. The result takes its name when it is complete and checked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from parfocal.backends import registry
from parfocal.brief import some
from parfocal.errors import TransferError
from parfocal.phrases import phrase
from parfocal.weights import views
from parfocal.weights.checkpoints import bare, kinds, template
from parfocal.weights.checkpoints.reading import load_checkpoint
from parfocal.weights.checkpoints.saving import Progress, save
from parfocal.weights.checkpoints.target import OTHER, TargetFile, of_model, of_template
from parfocal.weights.checkpoints.tensors import Array, CheckpointFile, FileTensor
from parfocal.weights.checkpoints.writing import PlannedTensor, check_framework, writer_for
from parfocal.weights.copying import copy_all
from parfocal.weights.drafting import build
from parfocal.weights.finishing import conclude
from parfocal.weights.plan import Ambiguity, Entry, Plan, PlanNote, refusal
from parfocal.weights.state import SideContents
from parfocal.weights.units import read_units
from parfocal.weights.verify import check_coverage, check_entries

SHOWN = 6


def convert(
    checkpoint: str | Path,
    port_or_template: Any,
    out: str | Path,
    *,
    plan: Plan | str | Path | None = None,
    partial: bool = False,
    progress: bool | None = None,
) -> Plan:
    """Write ``checkpoint`` as the port (a live model) or a template file has it, to ``out``.

    Reads .pth, .pt, .bin, .safetensors, .pdparams and the .index.json of shards; the suffix of
    ``out`` says what is written. Returns the plan that was carried out. A TransferError names every
    tensor without a counterpart and nothing is written, unless ``partial`` is true: then such tensors
    keep the values of the port or template. ``progress``: None shows a bar on a terminal only.

        pf.convert("resnet18.pth", paddle.vision.models.resnet18(), "resnet18.pdparams")
    """
    out = Path(out)
    writer = writer_for(out)
    source = load_checkpoint(Path(checkpoint))
    target = _target(port_or_template, out, source)
    check_framework(out.suffix, target.contents.framework)
    work = _prepare(source, target)
    found = _given(work, plan, target) if plan is not None else _matched(work)
    found = replace(found, noted=(*map(PlanNote, work.notes), *found.noted))
    if not found.complete and not partial:
        raise _failure(found)
    filled = _Values(work, target, found.entries)
    found = replace(found, noted=(*found.noted, *map(PlanNote, filled.notes())))
    with _progress(out, sum(each.nbytes for each in target.tensors), progress) as report:
        save(out, writer, target.tensors, filled, target.contents.framework, report)
    return found


@dataclass(frozen=True, slots=True)
class _Work:
    """Both sides as matching sees them, and the tensors of the checkpoint under those names."""

    tensors: dict[str, FileTensor]
    contents: tuple[SideContents, SideContents]
    ambiguous: tuple[Ambiguity, ...]
    open_weights: tuple[str, ...]  # of the checkpoint: square, and nothing says how they lie
    notes: tuple[str, ...]
    renamed: tuple[str, ...]  # those of the notes that say how names were shortened


def _target(port_or_template: Any, out: Path, source: CheckpointFile) -> TargetFile:
    if isinstance(port_or_template, (str, Path)):
        framework = source.framework or bare.framework_by_names(source.tensors)
        return of_template(Path(port_or_template), out, framework)
    return of_model(port_or_template)


def _prepare(source: CheckpointFile, target: TargetFile) -> _Work:
    names = [tensor.path for tensor in target.contents.stored]
    tensors, renamed = bare.without_prefixes(source.tensors, names)
    notes = [*source.notes, *renamed]
    framework = source.framework or bare.framework_by_names(tensors)
    assumed = framework is None
    if framework is None:
        framework = OTHER[target.contents.framework]
        notes.append(
            phrase(
                "the checkpoint does not say which framework it is of; taken for one of {framework}",
                framework=framework,
            )
        )
    contents = bare.contents_of(framework, tensors, target.contents)
    if target.live:
        contents, weights = kinds.by_port(contents, target.contents, assumed=assumed)
        notes += _notes_on_squares(contents) if not assumed else []
        return _Work(tensors, (contents, target.contents), (), tuple(weights), tuple(notes), tuple(renamed))
    contents, wanted, ambiguous = template.by_template(contents, target.contents, assumed=assumed)
    return _Work(tensors, (contents, wanted), tuple(ambiguous), (), tuple(notes), tuple(renamed))


def _notes_on_squares(contents: SideContents) -> list[str]:
    """Where all matrices are square, no shape tells a framework's two linear layers apart."""
    linear = [
        tensor
        for tensor in contents.stored
        if len(tensor.shape) == 2 and contents.owners[tensor.module].kind == "Linear"
    ]
    layers = registry.dialect(contents.framework).linear_names
    if not layers or not linear or not all(map(kinds.is_square, linear)):
        return []
    usual, other = layers
    names = [tensor.path for tensor in linear]
    return [
        phrase(
            "square, and taken for weights of {usual} ([in, out]): {names}; those of {other} "
            "lie the other way round, and nothing in the file tells",
            usual=usual,
            names=some(names, SHOWN),
            other=other,
        )
    ]


def _matched(work: _Work) -> Plan:
    references, ports = (read_units(each) for each in work.contents)
    found = conclude(
        build(references, ports, None), work.contents, lambda a, b: _same_values(work.tensors, a, b)
    )
    squares = [_square(entry) for entry in found.entries if entry.source in work.open_weights]
    return replace(found, ambiguous=(*found.ambiguous, *work.ambiguous, *squares))


def _square(entry: Entry) -> Ambiguity:
    return Ambiguity(
        (entry.target,),
        (
            phrase("{source} as it is", source=entry.source),
            phrase("{source} transposed", source=entry.source),
        ),
        phrase("a square weight fits both ways, and the checkpoint's other weights do not tell how it lies"),
    )


def _same_values(tensors: dict[str, FileTensor], first: Entry, second: Entry) -> bool:
    mine, yours = (_source(tensors, each) for each in (first, second))
    return mine.shape == yours.shape and bool(np.array_equal(mine, yours))


def _given(work: _Work, plan: Plan | str | Path, target: TargetFile) -> Plan:
    """A plan from outside: it must name tensors that exist, in views that agree."""
    plan = plan if isinstance(plan, Plan) else Plan.load(plan)
    check_entries(plan.entries, work.contents, ("checkpoint", target.words), _names_hint(work))
    return check_coverage(plan, work.contents)


def _names_hint(work: _Work) -> str:
    return "; ".join(work.renamed) or "paths are the names in the file, e.g. layer1.0.conv1.weight"


def _failure(plan: Plan) -> TransferError:
    return TransferError(
        refusal(plan),
        hint=phrase(
            "mend the port, or save the plan (error.plan.save(path), --save-plan), edit it and hand it back"
        ),
        plan=plan,
    )


def _source(tensors: dict[str, FileTensor], entry: Entry) -> Array:
    array = tensors[entry.source].read()
    if any(step.kind == "reshape" for step in entry.source_view) and not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    return views.apply(entry.source_view, array)


class _Values:
    """The values of every tensor of the target, made when they are asked for."""

    def __init__(self, work: _Work, target: TargetFile, entries: Sequence[Entry]) -> None:
        self._tensors = work.tensors
        self._target = target
        self._entries: dict[str, list[Entry]] = {}
        for entry in entries:
            self._entries.setdefault(entry.target, []).append(entry)

    def __call__(self, planned: PlannedTensor) -> Array:
        name = planned.tied_to or planned.name
        entries = self._entries.get(name, [])
        if not entries:
            return _plain(self._target.kept(name))
        sources = [_source(self._tensors, entry) for entry in entries]
        if len(entries) == 1 and not entries[0].target_view and _ready(sources[0], planned):
            return sources[0]
        if sum(source.size for source in sources) < np.prod(planned.shape, dtype=object):
            values = np.array(self._target.kept(name), order="C")  # parts of it stay as they are
        else:
            values = np.empty(planned.shape, planned.dtype)
        copy_all(
            (views.apply(entry.target_view, values), source)
            for entry, source in zip(entries, sources, strict=True)
        )
        return values

    def notes(self) -> list[str]:
        names = [each.name for each in self._target.tensors]
        ties = {each.name: each.tied_to for each in self._target.tensors}
        kept = [name for name in names if (ties[name] or name) not in self._entries]
        if not kept:
            return []
        return [
            phrase(
                "written as they are in the {words}: {kept}",
                words=self._target.words,
                kept=some(kept, SHOWN),
            )
        ]


def _plain(array: Array) -> Array:
    """In C order; ``np.ascontiguousarray`` would give a scalar an axis."""
    return array if array.flags.c_contiguous else np.array(array, order="C")


def _ready(source: Array, planned: PlannedTensor) -> bool:
    return source.dtype == planned.dtype and source.shape == planned.shape and source.flags.c_contiguous


@contextmanager
def _progress(out: Path, size: int, wanted: bool | None) -> Iterator[Progress]:
    """A bar over the bytes written and read back; nothing where nobody looks."""
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield lambda action, amount: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn()
    console = Console(file=sys.stderr, force_terminal=wanted)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(f"{out.name}", total=2 * size)
        yield lambda action, amount: bar.update(task, advance=amount, description=f"{action} {out.name}")
