"""``small_dataset``: a small part of a large data set, with as many samples of every class, for both sides.

A sample is ``(input, ..., label)``. Which samples are taken depends on the seed, the order and the labels
alone, so that both frameworks' data sets of the same files give the same part.
"""

from __future__ import annotations

import os
import secrets
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.brief import brief, some
from parfocal.capture.nested_values import flatten, rebuild
from parfocal.errors import EmptyComparisonError, InputError
from parfocal.phrases import phrase
from parfocal.run.storage import storage_errors
from parfocal.workflow.batches import save_batches, stacked
from parfocal.workflow.sample_streams import SampleStream, as_array
from parfocal.workflow.seeding import LARGEST

Form = Literal["images", "batches"]
CHANNELS = {1: 0, 3: 2, 4: 6}  # of a picture -> the colour type of a PNG file
Label = int | str


@dataclass(frozen=True, slots=True)
class _Chosen:
    """One sample that is taken: its number in the large data set, its label, and itself."""

    index: int
    label: Label
    sample: Any


def small_dataset(
    dataset: Any,
    out: str | Path,
    *,
    per_class: int = 16,
    form: Form = "images",
    seed: int = 0,
    batch_size: int = 16,
    labels: Sequence[Any] | None = None,
) -> Path:
    """Write ``per_class`` samples of every class of a dataset or loader; returns where.

    ``form``: "images" makes ``out`` a folder with a PNG file of every sample, ``out/class/number.png``, as
    torchvision's ImageFolder and paddle's DatasetFolder read it; "batches" makes it a file in a mixed order
    for ``pf.load_batches``. ``labels`` of all samples, where they are known, save reading all of them.
    """
    _check(per_class, form, seed, batch_size)
    stream = SampleStream(dataset, "reference")
    drawn = _draw(np.random.default_rng(seed), per_class)
    chosen = _by_labels(stream, labels, drawn) if labels is not None else _by_reading(stream, drawn)
    _check_balance(chosen, per_class)
    taken = [
        each
        for _, group in sorted(chosen.items(), key=lambda item: (str(type(item[0])), item[0]))
        for each in group
    ]
    if form == "images":
        return _write_images(taken, Path(out))
    order = np.random.default_rng(seed).permutation(len(taken))
    samples = [taken[place].sample for place in order]
    batches = [stacked(samples[at : at + batch_size]) for at in range(0, len(samples), batch_size)]
    return save_batches(batches, out, len(batches))


def _check(per_class: Any, form: Any, seed: Any, batch_size: Any) -> None:
    for name, value, least in (("per_class", per_class, 1), ("batch_size", batch_size, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST:
            raise InputError(
                phrase(
                    "{name}={value} is not a whole number from {least}",
                    name=name,
                    value=brief(value),
                    least=least,
                )
            )
    if form not in get_args(Form):
        raise InputError(
            phrase("form={form} is not known", form=brief(form)), hint=phrase('give "images" or "batches"')
        )


Draw = Callable[[dict[Label, list[Any]], Label, Callable[[], Any]], None]


def _draw(generator: np.random.Generator, size: int) -> Draw:
    """Of every class ``size`` are kept of those that came by, each as likely as any other."""
    met: dict[Label, int] = {}

    def draw(kept: dict[Label, list[Any]], label: Label, item: Callable[[], Any]) -> None:
        group = kept.setdefault(label, [])
        met[label] = met.get(label, 0) + 1
        if len(group) < size:
            group.append(item())
            return
        place = int(generator.integers(met[label]))
        if place < size:
            group[place] = item()

    return draw


def _by_reading(stream: SampleStream, draw: Draw) -> dict[Label, list[_Chosen]]:
    kept: dict[Label, list[_Chosen]] = {}
    for index, sample in enumerate(_samples(stream)):
        label = label_of(sample, index)
        draw(kept, label, lambda index=index, label=label, sample=sample: _Chosen(index, label, sample))  # type: ignore[misc]
    if not kept:
        raise EmptyComparisonError(phrase("the dataset has no samples"))
    return kept


def _by_labels(stream: SampleStream, labels: Sequence[Any], draw: Draw) -> dict[Label, list[_Chosen]]:
    """Only the samples that are taken are read, and must have the label that is said."""
    if not stream.by_index or len(labels) != stream.length:
        raise InputError(
            phrase("{count} labels for a dataset of {length}", count=len(labels), length=stream.length),
            hint=phrase("give the label of every sample of a dataset that is read by number, or none"),
        )
    numbers: dict[Label, list[int]] = {}
    for index, value in enumerate(labels):
        draw(numbers, _plain(as_array(value), index), lambda index=index: index)  # type: ignore[misc]
    kept: dict[Label, list[_Chosen]] = {}
    for label, indices in numbers.items():
        for index in indices:
            sample = stream.source[index]
            if label_of(sample, index) != label:
                raise InputError(
                    phrase(
                        "sample {index} has the label {found}, not {label}",
                        index=index,
                        found=label_of(sample, index),
                        label=label,
                    ),
                    hint=phrase("give labels in the order of the dataset"),
                )
            kept.setdefault(label, []).append(_Chosen(index, label, sample))
    return kept


def _samples(stream: SampleStream) -> Iterator[Any]:
    for item in stream.items():
        if stream.by_index:
            yield item
            continue
        flat = flatten(item)
        arrays = {slot: as_array(leaf) for slot, leaf in flat.leaves.items()}
        lengths = {len(array) if array.ndim else 0 for array in arrays.values()}
        if len(lengths) != 1:
            raise InputError(
                phrase(
                    "the arrays of a batch have the lengths {lengths}",
                    lengths=some(list(map(str, sorted(lengths)))),
                ),
                hint=phrase("pass the dataset in place of the loader"),
            )
        for index in range(lengths.pop()):
            yield rebuild(flat.shape, {slot: array[index] for slot, array in arrays.items()})


def label_of(sample: Any, index: int) -> Label:
    """The last part of a sample."""
    parts = list(sample.values()) if isinstance(sample, Mapping) else sample
    if not isinstance(parts, (tuple, list)) or len(parts) < 2:
        raise InputError(
            phrase("sample {index} is {sample}, not (input, label)", index=index, sample=brief(sample)),
            hint=phrase("pass a dataset whose samples end with their label"),
        )
    return _plain(as_array(parts[-1]), index)


def _plain(label: Array, index: int) -> Label:
    if label.size != 1 or label.dtype.kind not in "iubUS":
        raise InputError(
            phrase("the label of sample {index} is {label}, not one class", index=index, label=brief(label)),
            hint=phrase("classes are whole numbers or words"),
        )
    value = label.reshape(-1)[0]
    return str(value) if label.dtype.kind in "US" else int(value)


def _check_balance(chosen: Mapping[Label, Sequence[_Chosen]], per_class: int) -> None:
    few = {label: len(group) for label, group in chosen.items() if len(group) < per_class}
    if few:
        raise InputError(
            phrase(
                "{classes} have fewer than {per_class} samples",
                classes=some([f"{label} ({count})" for label, count in few.items()]),
                per_class=per_class,
            ),
            hint=f"per_class={min(few.values())}",
        )


def _write_images(taken: Sequence[_Chosen], out: Path) -> Path:
    if out.exists():
        raise InputError(phrase("{path} is there already", path=out), hint=phrase("give another folder"))
    width = max(len(str(each.label)) for each in taken)  # folders are numbered in the order of their names
    building = out.with_name(f".{out.name}-{secrets.token_hex(8)}")
    with storage_errors("write", out):
        try:
            for each in taken:
                _check_name(each.label)
                name = f"{each.label:0{width}d}" if isinstance(each.label, int) else each.label
                (building / name).mkdir(parents=True, exist_ok=True)
                (building / name / f"{each.index:08d}.png").write_bytes(png_of(_picture(each)))
            os.replace(building, out)
        finally:
            shutil.rmtree(building, ignore_errors=True)
    return out


def _check_name(label: Label) -> None:
    if isinstance(label, str) and (not label or label.startswith(".") or set(label) & set("/\\:")):
        raise InputError(
            phrase("the label {label} cannot be the name of a folder", label=brief(label)),
            hint=phrase('rename the class, or write form="batches"'),
        )


def _picture(chosen: _Chosen) -> Array:
    """Rows, columns and channels."""
    parts = list(chosen.sample.values()) if isinstance(chosen.sample, Mapping) else chosen.sample
    array = as_array(parts[0])
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim == 3 and array.shape[2] not in CHANNELS and array.shape[0] in CHANNELS:
        array = array.transpose(1, 2, 0)
    if len(parts) != 2 or array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] not in CHANNELS:
        raise InputError(
            phrase(
                "sample {index} has {count} parts, the first {dtype}{shape}: not a picture of bytes",
                index=chosen.index,
                count=len(parts),
                dtype=array.dtype.name,
                shape=list(array.shape),
            ),
            hint=phrase('leave out the transforms, or write form="batches"'),
        )
    return array


def png_of(picture: Array) -> bytes:
    """A PNG file of bytes by row, column and channel; every reader gives back the same bytes."""
    rows, columns, channels = picture.shape
    header = struct.pack(">IIBBBBB", columns, rows, 8, CHANNELS[channels], 0, 0, 0)
    plain = np.zeros((rows, 1 + columns * channels), np.uint8)  # each row begins with its filter: none
    plain[:, 1:] = picture.reshape(rows, -1)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(plain.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
