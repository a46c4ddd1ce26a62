"""Writing dumps in PaDiff's layout: a JSON file with the tree, and one ``.npy`` file a tensor.

The tree names each ``.npy`` file by the path it was written to; readers look next to the JSON
file first, so a dump can be moved. bfloat16 is widened to float32, which loses nothing; the JSON
keeps the name of the real dtype.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from parfocal.backends.protocol import Array, StateTensor
from parfocal.compat.padiff.abstracts.tree import ModuleNode, describe, route
from parfocal.compat.padiff.places import beside_the_script
from parfocal.compat.padiff.report.report import KeptTensor, ReportNode
from parfocal.compat.padiff.utils import reset_dir
from parfocal.run.storage import read_limited, storage_errors, write_atomically

if TYPE_CHECKING:
    from parfocal.compat.padiff.abstracts.proxy_model import ProxyModel

STATE_FILES = ("params.json", "weights.json", "grads.json")
MAX_JSON = 1 << 30
_ARRAY_FOLDER = re.compile(r'([^/\\"]+)[/\\]+[^/\\"]+\.npy"')  # the last folder of a path in JSON
_dump_root_path = beside_the_script("padiff_dump")


def set_dump_root_path(path: str | os.PathLike[str]) -> None:
    """Where models created from now on dump to, unless they are told otherwise."""
    global _dump_root_path
    _dump_root_path = os.fspath(path)


def get_dump_root_path() -> str:
    """Where models created now dump to."""
    return _dump_root_path


def dump_report(model: ProxyModel, dump_path: str | os.PathLike[str]) -> None:
    """``report.json`` and ``tensors/``: what the model did since its report was cleared."""
    folder = os.fspath(dump_path)
    save = _saver(f"{folder}/tensors", "tensor")
    document = {
        **_heading(model, folder, "report.json"),
        "tree": [_report_entry(model, root, save) for root in model.report.roots],
    }
    _write_json(document, folder, "report.json")


def dump_params(model: ProxyModel, path: str | os.PathLike[str]) -> None:
    """``params.json``, ``weights/`` and ``grads/``: parameters, buffers and gradients as they are now."""
    _dump_state(model, os.fspath(path), "params.json", weights=True, grads=True)


def dump_weights(model: ProxyModel, path: str | os.PathLike[str]) -> None:
    """``weights.json`` and ``weights/``: parameters and buffers as they are now."""
    _dump_state(model, os.fspath(path), "weights.json", weights=True)


def dump_grads(model: ProxyModel, path: str | os.PathLike[str]) -> None:
    """``grads.json`` and ``grads/``: the parameters' gradients as they are now."""
    _dump_state(model, os.fspath(path), "grads.json", grads=True)


Save = Callable[[Array], str]


def _saver(target: str, prefix: str) -> Save:
    """A function that saves an array in an emptied folder and returns the file's path."""
    reset_dir(target)
    numbers = count()

    def save(array: Array) -> str:
        path = f"{target}/{prefix}_{next(numbers)}.npy"
        plain = array if array.dtype.isbuiltin == 1 else array.astype(np.float32)
        with storage_errors("write", path):
            np.save(path, plain, allow_pickle=False)
        return path

    return save


def _subfolders_in_use(folder: str, file_name: str) -> set[str]:
    """The subfolders that the other dumps of weights and gradients in a folder point to."""
    found: set[str] = set()
    for name in STATE_FILES:
        path = Path(folder) / name
        if name != file_name and path.exists():
            found.update(_ARRAY_FOLDER.findall(read_limited(path, MAX_JSON).decode("utf-8", "replace")))
    return found


def _free(subfolder: str, taken: set[str]) -> str:
    """The subfolder, with a number where another dump owns it: no dump overwrites another's files."""
    numbered = (f"{subfolder}_{number}" for number in count(1))
    return next(name for name in chain([subfolder], numbered) if name not in taken)


def _heading(model: ProxyModel, folder: str, file_name: str) -> dict[str, Any]:
    mapped = model.marker.layer_map
    return {
        "model_name": model.name,
        "framework": model.framework,
        "file_path": f"{folder}/{file_name}",
        "layer_map": {
            "route": [route(model.name, entry.path) for entry in mapped],
            "fullname": [model.marker.fullname(entry.module) for entry in mapped],
        },
    }


def _write_json(document: dict[str, Any], folder: str, file_name: str) -> None:
    write_atomically(Path(folder) / file_name, json.dumps(document, indent=4).encode("utf-8"))


def _report_entry(model: ProxyModel, node: ReportNode, save: Save) -> dict[str, Any]:
    return {
        "name": node.name,
        "route": route(model.name, node.path),
        "type": node.layer_type,
        "kind": node.kind,
        "builtin": node.builtin,
        "fwd_outputs": [_tensor_entry(model, kept, save) for kept in node.outputs],
        "bwd_grads": [_tensor_entry(model, kept, save) for kept in node.input_gradients.values()],
        "metas": {"fwd_step": 2 * node.step, "bwd_step": 2 * node.step + 1, "net_id": node.net_id},
        "children": [_report_entry(model, child, save) for child in node.children],
        "stack": node.stack(),
    }


def _tensor_entry(model: ProxyModel, kept: KeptTensor | None, save: Save) -> dict[str, Any]:
    """One tensor; a gradient that never arrived keeps its place with ``path`` null."""
    if kept is None:
        return {"path": None, "shape": None, "dtype": None, "place": None, "layout": None}
    return {
        "path": save(kept.array),
        "shape": str(list(kept.array.shape)),
        "dtype": f"{model.framework}.{kept.dtype}",
        "place": kept.device,
        "layout": "strided" if model.framework == "torch" else "NCHW",
    }


def _dump_state(
    model: ProxyModel, folder: str, file_name: str, *, weights: bool = False, grads: bool = False
) -> None:
    taken = _subfolders_in_use(folder, file_name)
    save_weight = _saver(f"{folder}/{_free('weights', taken)}", "weights") if weights else None
    save_grad = _saver(f"{folder}/{_free('grads', taken)}", "grads") if grads else None
    own: dict[str, list[StateTensor]] = {}
    for tensor in model.backend.state(model.model):
        if tensor.tied_to is None:  # a tied tensor stands where it was first defined
            own.setdefault(tensor.module, []).append(tensor)
    elements = training_elements(model.report.finished)

    def entry(node: ModuleNode) -> dict[str, Any]:
        available = model.marker.weighed(node)
        tensors = own.get(node.path, []) if available else []
        parameters = [tensor for tensor in tensors if tensor.role == "parameter"]
        buffers = [tensor for tensor in tensors if tensor.role == "buffer" and tensor.persistent]
        return {
            "name": node.class_name,
            "route": route(model.name, node.path),
            "repr": describe(node.module),
            "kind": model.backend.kind(node.module),
            "weight_layout": model.backend.settings(node.module).get("weight_layout"),
            "available": available,
            "elements": elements.get(node.path, 0),
            "shapes": {
                tensor.name: list(model.backend.shape(tensor.value)) for tensor in (*parameters, *buffers)
            },
            "weights": _saved(parameters, model, save_weight),
            "buffers": _saved(buffers, model, save_weight),
            "grads": _saved_gradients(parameters, model, save_grad),
            "children": [entry(child) for child in node.children],
        }

    tree = entry(model.marker.tree())
    _write_json({**_heading(model, folder, file_name), "tree": tree}, folder, file_name)


def training_elements(calls: Iterable[ReportNode]) -> dict[str, int]:
    """Path -> the fewest numbers a call in training mode was given."""
    found: dict[str, int] = {}
    for call in calls:
        if call.training and call.elements and call.layer_type != "api":
            found[call.path] = min(call.elements, found.get(call.path, call.elements))
    return found


def _saved(tensors: list[StateTensor], model: ProxyModel, save: Save | None) -> dict[str, str]:
    return {tensor.name: save(model.backend.to_array(tensor.value)) for tensor in tensors} if save else {}


def _saved_gradients(
    tensors: list[StateTensor], model: ProxyModel, save: Save | None
) -> dict[str, str | None]:
    if save is None:
        return {}
    gradients = {tensor.name: model.gradient(tensor.value) for tensor in tensors}
    return {name: None if array is None else save(array) for name, array in gradients.items()}
