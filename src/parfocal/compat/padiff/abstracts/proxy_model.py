"""A model that reports what it does: PaDiff's wrapper around a model of either framework."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from parfocal.backends import registry
from parfocal.backends.protocol import Array
from parfocal.compat.padiff import dump_tools
from parfocal.compat.padiff.abstracts.marker import Marker
from parfocal.compat.padiff.abstracts.proxy_parameter import ProxyParam
from parfocal.compat.padiff.abstracts.tree import describe
from parfocal.compat.padiff.places import rank
from parfocal.compat.padiff.report import Report, record_call
from parfocal.compat.padiff.report.following import BaseFollower
from parfocal.compat.padiff.utils import log, reset_dir
from parfocal.errors import InputError
from parfocal.phrases import phrase

Folder = str | os.PathLike[str]


class ProxyModel:
    """``model`` is the original. Calls go through the proxy, and so does ``backward``."""

    def __init__(self, model: Any, name: str | None = None, dump_freq: int = 1) -> None:
        if dump_freq < 1:
            raise InputError(phrase("dump_freq is {dump_freq}; it must be 1 or more", dump_freq=dump_freq))
        self.model = model
        self.name = name or type(model).__name__
        self.backend = registry.of(model)
        self.framework = self.backend.name
        self.marker = Marker(self.backend, model)
        self.report = Report()
        self.step = 0
        self.dump_freq = dump_freq
        self.dump_path = f"{dump_tools.get_dump_root_path()}/{self.name}"
        if dump_freq > 1:
            log(
                "WARNING: after setting dump_freq > 1 please call dump_params, dump_weighs, dump_grads apis "
                "on the steps that can be divided by dump_freq. The calling of try_dump is intact."
            )

    @staticmethod
    def create_from(model: Any, name: str | None = None, dump_freq: int = 1) -> ProxyModel:
        """Wrap a model, once."""
        return model if isinstance(model, ProxyModel) else ProxyModel(model, name, dump_freq)

    @property
    def class_name(self) -> str:
        return type(self.model).__name__

    @property
    def fullname(self) -> str:
        return f"{self.framework}::{self.class_name}"

    @property
    def route(self) -> str:
        return self.name

    def __str__(self) -> str:
        return f"Model({self.fullname})"

    __repr__ = __str__

    def model_repr_info(self) -> str:
        """The class and what the model says of itself in one line."""
        return describe(self.model)

    # Running

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._recorded(self.model, *args, **kwargs)

    def train_batch(self, *args: Any, **kwargs: Any) -> Any:
        """paddle's pipeline parallel: a whole step of it."""
        return self._recorded(self.model.train_batch, *args, **kwargs)

    def forward_backward_pipeline(self, *args: Any, **kwargs: Any) -> Any:
        """paddle's pipeline parallel: forward and backward."""
        return self._recorded(self.model.forward_backward_pipeline, *args, **kwargs)

    def _recorded(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.step % self.dump_freq:
            return function(*args, **kwargs)
        with record_call(self.backend, self.model, self.marker, self.report):
            return function(*args, **kwargs)

    def run_single_step(self, inputs: dict[str, Any], follower: BaseFollower | None = None) -> Any:
        """Call the model so that every call inside is on its own, given the base's values if followed."""
        with record_call(self.backend, self.model, self.marker, self.report, isolate=True, follower=follower):
            return self.model(**inputs)

    def backward(self, loss: Any) -> Any:
        """The loss's own backward; gradients are recorded as they arrive."""
        return loss.backward()

    # Lists and maps

    def update_black_list(self, layers: Any, mode: str = "all") -> None:
        """Leave these layers ("self"), their "sublayers" or "all" of it out of reports and dumps."""
        self.marker.update_black_list(layers, mode)

    def update_white_list(self, layers: Any, mode: str = "self") -> None:
        """Keep nothing but these layers ("self"), their "sublayers" or "all" of it."""
        self.marker.update_white_list(layers, mode)

    def update_unassigned_weights_list(self, layers: Any, mode: str = "self") -> None:
        """``assign_weight`` leaves the weights of these layers as they are, and checks skip them."""
        self.marker.update_unassigned_weights_list(layers, mode)

    def update_black_list_with_class(self, layer_class: type | tuple[type, ...], mode: str = "self") -> None:
        """As ``update_black_list`` for every layer of a class."""
        self.marker.update_black_list(self._layers_of(layer_class), mode)

    def update_white_list_with_class(self, layer_class: type | tuple[type, ...], mode: str = "self") -> None:
        """As ``update_white_list`` for every layer of a class."""
        self.marker.update_white_list(self._layers_of(layer_class), mode)

    def set_layer_map(self, layers: Any) -> None:
        """These layers correspond, in this order, to those given for the other model."""
        self.marker.set_layer_map(layers)

    def auto_layer_map(self, place: str) -> bool:
        """Map all layers that have a special init; the model's ``place`` is "base" or "raw"."""
        return self.marker.auto_layer_map(place)

    def _layers_of(self, layer_class: type | tuple[type, ...]) -> list[Any]:
        return [
            module for module in self.backend.modules(self.model).values() if isinstance(module, layer_class)
        ]

    # Dumping

    def clear_report(self) -> None:
        """Forget what was recorded."""
        self.report.release()
        self.report = Report()

    def try_dump(
        self,
        *args: Any,
        per_step: int | None = None,
        dir_path: Folder | None = None,
        dump_path: Folder | None = None,
    ) -> None:
        """End a step: dump report and parameters if it is one of those to be dumped, then clear the report.

        Two forms: ``try_dump(per_step, dir_path)`` dumps at every ``per_step``-th call, as the document
        says (10: at the tenth and the twentieth). ``try_dump(dump_path)`` dumps at steps 0, ``dump_freq``,
        2 ``dump_freq``, ..., as the original does. Without a folder it is ``step_<step>/rank_<rank>`` in
        ``dump_path``.
        """
        numbers = [given for given in (*args, per_step) if isinstance(given, int)]
        folders = [given for given in (*args, dir_path, dump_path) if isinstance(given, (str, os.PathLike))]
        if len(numbers) > 1 or len(folders) > 1 or len(numbers) + len(folders) < len(args):
            raise InputError(
                phrase("try_dump takes a number of steps and a folder, got {args}", args=repr(args))
            )
        every = numbers[0] if numbers else self.dump_freq
        if every < 1:
            raise InputError(phrase("per_step is {every}; it must be 1 or more", every=every))
        if numbers and self.dump_freq > 1:
            raise InputError(
                phrase(
                    "per_step is {every}; with dump_freq={dump_freq} most of these calls are not recorded",
                    every=every,
                    dump_freq=self.dump_freq,
                ),
                hint=phrase("give one of the two: create_model(model), or try_dump() without per_step"),
            )
        if (self.step + bool(numbers)) % every == 0:
            folder = folders[0] if folders else f"{self.dump_path}/step_{self.step}/rank_{rank()}"
            reset_dir(os.fspath(folder))
            self.dump_params(folder)
            self.dump_report(folder)
        self.clear_report()
        self.step += 1

    def dump_report(self, dump_path: Folder | None = None) -> None:
        """Dump what was recorded since the report was cleared."""
        dump_tools.dump_report(self, self._folder(dump_path))

    def dump_params(self, dump_path: Folder | None = None) -> None:
        """Dump weights, buffers and gradients."""
        dump_tools.dump_params(self, self._folder(dump_path))

    def dump_weights(self, dump_path: Folder | None = None) -> None:
        """Dump weights and buffers."""
        dump_tools.dump_weights(self, self._folder(dump_path))

    def dump_grads(self, dump_path: Folder | None = None) -> None:
        """Dump gradients."""
        dump_tools.dump_grads(self, self._folder(dump_path))

    def _folder(self, dump_path: Folder | None) -> Folder:
        return f"{self.dump_path}/rank_{rank()}" if dump_path is None else dump_path

    # The original's own interface

    def parameters(self, recursively: bool | None = None) -> Any:
        """The original's parameters; wrapped ones when ``recursively`` is given, its own only if False."""
        if recursively is None:
            return self.model.parameters()
        return (param for _, param in self.named_parameters(recursively))

    def named_parameters(self, recursively: bool | None = None) -> Any:
        """As ``parameters``, with names."""
        if recursively is None:
            return self.model.named_parameters()
        return (
            (tensor.path, ProxyParam(tensor.value, self.backend))
            for tensor in self.backend.state(self.model)
            if tensor.role == "parameter" and tensor.tied_to is None and (recursively or not tensor.module)
        )

    def gradient(self, parameter: Any) -> Array | None:
        """A parameter's gradient; paddle's float32 ``main_grad`` is the one that counts if there is one."""
        wrapped = ProxyParam(parameter, self.backend)
        main = wrapped.main_grad()
        return wrapped.grad() if main is None else main

    def children(self) -> Iterator[ProxyModel]:
        """The layers right below the model, wrapped."""
        return (child for _, child in self.named_children())

    def named_children(self) -> Iterator[tuple[str, ProxyModel]]:
        """Name and wrapped layer right below the model."""
        return ((node.path, ProxyModel(node.module)) for node in self.marker.tree().children)

    def submodels(self) -> Iterator[ProxyModel]:
        """Every layer, wrapped, the model itself first."""
        return (submodel for _, submodel in self.named_submodels())

    def named_submodels(self) -> Iterator[tuple[str, ProxyModel]]:
        """Path and wrapped layer, the model itself first."""
        return ((path, ProxyModel(module)) for path, module in self.backend.modules(self.model).items())

    def get_device(self) -> str:
        """Where the first parameter lives."""
        return self.backend.device(next(iter(self.model.parameters())))

    def to_cpu(self) -> None:
        """Move the model to main memory."""
        self.model.to("cpu")

    def to(self, device: Any) -> None:
        """Move the model to a device."""
        self.model.to(device)

    def register_forward_pre_hook(self, hook: Any) -> Any:
        """The original's own."""
        return self.model.register_forward_pre_hook(hook)

    def register_forward_post_hook(self, hook: Any) -> Any:
        """The original's own, which torch calls ``register_forward_hook``."""
        register = getattr(self.model, "register_forward_post_hook", None) or self.model.register_forward_hook
        return register(hook)

    def __getattr__(self, name: str) -> Any:
        """Whatever else the original has: train, eval, state_dict, train_batch, ..."""
        if name == "model":
            raise AttributeError(name)
        return getattr(self.model, name)
