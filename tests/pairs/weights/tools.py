"""What the tests of transfer share: live weights, running both sides, disguises."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import torch

ITERATED = (
    *(torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict),
    *(paddle.nn.Sequential, paddle.nn.LayerList, paddle.nn.LayerDict),
)
torch.set_num_threads(1)  # small models: threads that wait for each other cost more than they give


def randomise(model: Any, seed: int = 0) -> Any:
    """Weights that keep signals alive through any depth, and statistics that are not the defaults."""
    generator = np.random.default_rng(seed)
    is_torch = isinstance(model, torch.nn.Module)
    state = model.state_dict()
    done: set[int] = set()
    for name, value in state.items():
        shape = tuple(value.shape)
        key = value.data_ptr()
        if key in done or not _is_float(value):
            continue
        done.add(key)
        array = np.asarray(_values(name, shape, generator, is_torch), dtype="float32")
        if is_torch:
            with torch.no_grad():
                value.copy_(torch.from_numpy(array))
        else:
            value.set_value(paddle.to_tensor(array).astype(value.dtype))
    model.eval()
    return model


def _is_float(value: Any) -> bool:
    return "float" in str(value.dtype)


def _values(name: str, shape: tuple[int, ...], generator: np.random.Generator, is_torch: bool) -> Any:
    last = name.rpartition(".")[2]
    if last in ("running_var", "_variance") or (len(shape) == 1 and last in ("weight", "scale", "weight_g")):
        return generator.uniform(0.5, 1.5, shape)
    if len(shape) < 2:
        return 0.1 * generator.standard_normal(shape)
    fan = np.prod(shape[1:]) if is_torch or len(shape) > 2 else shape[0]
    # Drawing hundreds of millions of numbers takes longer than everything that is tested.
    drawn = generator.standard_normal(min(int(np.prod(shape)), 1_000_003), dtype="float32")
    return np.resize(drawn, shape) * np.float32(np.sqrt(1.5 / fan))


def run(model: Any, *arrays: Any) -> list[np.ndarray]:
    """All tensors of the output, as arrays, on inputs given as arrays."""
    if isinstance(model, torch.nn.Module):
        with torch.no_grad():
            return [leaf.float().numpy() for leaf in _tensors(model(*map(torch.as_tensor, arrays)))]
    with paddle.no_grad():
        return [leaf.astype("float32").numpy() for leaf in _tensors(model(*map(paddle.to_tensor, arrays)))]


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in _tensors(item)]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _tensors(item)]
    return [value] if isinstance(value, (torch.Tensor, paddle.Tensor)) else []


def gap(first: list[np.ndarray], second: list[np.ndarray]) -> float:
    """Greatest difference of the first outputs, relative to the greatest value."""
    mine, yours = first[0], second[0]
    assert mine.shape == yours.shape
    scale = float(np.abs(mine).max())
    assert scale > 1e-3, "dead signals prove nothing"
    return float(np.abs(mine - yours).max()) / scale


def state_bytes(model: Any) -> dict[str, bytes]:
    """Every tensor of a model, bit by bit."""
    found = {}
    for name, value in model.state_dict().items():
        if isinstance(value, torch.Tensor):
            raw = value.detach().contiguous().reshape(-1).view(torch.uint8)
            found[name] = raw.numpy().tobytes()
        else:
            found[name] = value.numpy().tobytes()
    return found


def disguise(model: Any, seed: int = 0) -> Any:
    """Rename every child to something meaningless and shuffle the order of definition.

    The code of ``forward`` goes on using the old names: attribute look-up is translated. Containers
    that are iterated over (Sequential, ModuleList, ModuleDict and their like) keep order and names.
    """
    generator = np.random.default_rng(seed)
    store = "_modules" if isinstance(model, torch.nn.Module) else "_sub_layers"
    everything = list(model.modules()) if isinstance(model, torch.nn.Module) else [model, *model.sublayers()]
    for number, module in enumerate(everything):
        children = getattr(module, store)
        iterated = isinstance(module, ITERATED)
        framework = type(module).__module__.startswith(("torch.nn", "paddle.nn"))
        if not children or iterated or framework:
            continue
        old = list(children.items())
        renamed = {}
        translation = {}
        for place in generator.permutation(len(old)):
            name, child = old[place]
            new = f"z{number}y{generator.integers(10**6)}x{place}"
            renamed[new] = child
            translation[name] = new
        children.clear()
        children.update(renamed)
        _translate(module, store, translation)
    return model


def _translate(module: Any, store: str, translation: dict[str, str]) -> None:
    kind = type(module)

    def look_up(self: Any, name: str) -> Any:
        names = self.__dict__.get("translation", {})
        if name in names:
            return self.__dict__[store][names[name]]
        return kind.__getattr__(self, name)

    module.__dict__["translation"] = translation
    module.__class__ = type(kind.__name__, (kind,), {"__getattr__": look_up, "__module__": kind.__module__})
