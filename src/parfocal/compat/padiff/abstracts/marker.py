"""Which modules of a model are recorded, and which take part in weight assignment.

Lists hold modules (the framework's own objects). A white list, once set, wins over the black
list. What lies inside a mapped layer is that layer's own business and is left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from parfocal.backends.protocol import Backend
from parfocal.compat.padiff.abstracts.tree import ModuleNode, module_tree
from parfocal.compat.padiff.utils import log
from parfocal.compat.padiff.weight_init.special_init.special_init_pool import global_special_init_pool
from parfocal.errors import InputError
from parfocal.phrases import phrase
from parfocal.weights.tables import COMPOSITES

LIST_MODES = ("self", "sublayers", "all")
PLACES = ("base", "raw")


class Marker:
    """The black, white and unassigned lists and the layer map of one model."""

    def __init__(self, backend: Backend, model: Any) -> None:
        self.backend = backend
        self.model = model
        self.black_list: set[Any] = set()
        self.black_list_recursively: set[Any] = set()
        self.white_list: set[Any] = set()
        self.white_list_recursively: set[Any] = set()
        self.use_white_list = False
        self.unassigned_weights_list: set[Any] = set()
        self.unassigned_weights_list_recursively: set[Any] = set()
        self.layer_map: list[ModuleNode] = []

    def update_black_list(self, layers: Any, mode: str = "all") -> None:
        """Leave these layers, their sublayers or both out."""
        self._extend(layers, mode, self.black_list, self.black_list_recursively)

    def update_white_list(self, layers: Any, mode: str = "self") -> None:
        """Keep nothing but these layers, their sublayers or both; the black list no longer counts."""
        self._extend(layers, mode, self.white_list, self.white_list_recursively)
        self.use_white_list = True

    def update_unassigned_weights_list(self, layers: Any, mode: str = "all") -> None:
        """Leave the weights of these layers, of their sublayers or of both as they are."""
        self._extend(layers, mode, self.unassigned_weights_list, self.unassigned_weights_list_recursively)

    def set_layer_map(self, layer_map: Iterable[Any]) -> None:
        """These layers correspond, in this order, to those of the other model's layer map."""
        nodes = {id(node.module): node for node in self.tree().walk()}
        layers = self._checked(layer_map)
        self.layer_map = [nodes[id(layer)] for layer in layers]

    def auto_layer_map(self, model_place: str) -> bool:
        """Map every layer for which a special init is registered, in definition order."""
        if model_place not in PLACES:
            raise InputError(
                phrase(
                    "the model's place is {model_place}; it is either 'base' or 'raw'",
                    model_place=repr(model_place),
                )
            )
        pool = global_special_init_pool
        known = pool.registered_base_models if model_place == "base" else pool.registered_raw_models
        log("Auto set layer_map start searching...")
        found: list[ModuleNode] = []
        for node in self.tree().walk():
            fullname = self.fullname(node.module)
            if fullname in known and not any(above in found for above in node.ancestors()):
                print(f"++++    {model_place}_model found `{fullname}` add to layer_map   ++++")
                found.append(node)
        print()
        self.layer_map = found
        return True

    def tree(self) -> ModuleNode:
        """The model's modules as they are now."""
        return module_tree(self.backend, self.model)

    def fullname(self, module: Any) -> str:
        """PaDiff's name of a class: ``torch::Linear``."""
        return f"{self.backend.name}::{type(module).__name__}"

    def listed(self, node: ModuleNode) -> bool:
        """Whether the lists and the layer map let this module be recorded."""
        mapped = {id(entry.module) for entry in self.layer_map}
        above = [ancestor.module for ancestor in node.ancestors()]
        if any(id(module) in mapped for module in above):
            return False
        if self.use_white_list and node.parent is not None:
            return node.module in self.white_list or any(m in self.white_list_recursively for m in above)
        return not self._left_out(node)

    def recorded(self, node: ModuleNode) -> bool:
        """Whether calls of this module are recorded; depends on ``PADIFF_SIKP_WRAP_LAYER`` too."""
        return self.listed(node) and not (node.parent is not None and _skips_wrappers() and self._bare(node))

    def weighed(self, node: ModuleNode) -> bool:
        """Whether this module's weights are dumped and compared.

        A layer stands for what is inside it, but for what a black list names there.
        """
        mapped = {id(entry.module) for entry in self.layer_map}
        whole = next(
            (
                above
                for above in reversed(list(node.ancestors()))
                if id(above.module) in mapped or self.backend.kind(above.module) in COMPOSITES
            ),
            node,
        )
        return self.listed(whole) and not self._left_out(node) and self.assigned(node)

    def _left_out(self, node: ModuleNode) -> bool:
        """Whether the black lists leave a module out; they do not count beside a white list."""
        inside = self.black_list_recursively
        return not self.use_white_list and (
            node.module in self.black_list or any(above.module in inside for above in node.ancestors())
        )

    def assigned(self, node: ModuleNode) -> bool:
        """Whether this module's weights are to become those of the other model."""
        inside = self.unassigned_weights_list_recursively
        return node.module not in self.unassigned_weights_list and not any(
            ancestor.module in inside for ancestor in node.ancestors()
        )

    def _bare(self, node: ModuleNode) -> bool:
        state = self.backend.state(node.module)
        return not any(entry.module == "" and entry.role == "parameter" for entry in state)

    def _extend(self, layers: Any, mode: str, itself: set[Any], recursively: set[Any]) -> None:
        if mode not in LIST_MODES:
            raise InputError(
                phrase(
                    "mode is {mode}; the modes are: {list_modes}",
                    mode=repr(mode),
                    list_modes=", ".join(LIST_MODES),
                )
            )
        found = self._checked(layers)
        if mode in ("self", "all"):
            itself.update(found)
        if mode in ("sublayers", "all"):
            recursively.update(found)

    def _checked(self, layers: Any) -> list[Any]:
        """The layers as a list; a layer of some other model is refused instead of ignored."""
        found = [layers] if self.backend.is_model(layers) else list(layers)
        own = {id(module) for module in self.backend.modules(self.model).values()}
        for layer in found:
            if id(layer) not in own:
                raise InputError(
                    phrase(
                        "{kind} is not a layer of {model}",
                        kind=type(layer).__name__,
                        model=type(self.model).__name__,
                    ),
                    hint=phrase("pass the layer objects themselves, e.g. [model.model.linear1]"),
                )
        return found


def _skips_wrappers() -> bool:
    return os.environ.get("PADIFF_SIKP_WRAP_LAYER", "").upper() in ("TRUE", "ON", "1")
