"""What modules keep is put back as each note found it, also where an earlier note is taken over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parfocal.backends.keeping import KeptAttributes


class Tensor:
    def __init__(self, value: float) -> None:
        self.values = np.array([value])


class Module:
    """Like a layer: a mode, buffers, and whatever its code keeps."""

    def __init__(self) -> None:
        self.training = True
        self._buffers: dict[str, Tensor] = {}
        self.size = 3
        self.table: Tensor | None = None
        self.tables: dict[int, Tensor] = {}


class Framework:
    def modules(self, model: Any) -> dict[str, Any]:
        return {"": model}

    def plain_attributes(self, module: Any) -> dict[str, Any]:
        return {name: value for name, value in vars(module).items() if name != "training"}

    def is_tensor(self, value: object) -> bool:
        return isinstance(value, Tensor)

    def state(self, model: Any) -> list[Any]:
        return []

    def requires_grad(self, tensor: Any) -> bool:
        return True

    def to_array(self, tensor: Any, *, copy: bool = True) -> Any:
        return tensor.values.copy() if copy else tensor.values

    def write(self, tensor: Any, array: Any) -> None:
        tensor.values[:] = array


def keep_an_attribute(module: Module) -> None:
    module.table = Tensor(1.0)


def keep_in_a_dict(module: Module) -> None:
    module.tables[7] = Tensor(1.0)


def keep_under_a_new_name(module: Module) -> None:
    module.other = Tensor(1.0)  # type: ignore[attr-defined]


def keep_a_buffer(module: Module) -> None:
    module._buffers["count"] = Tensor(1.0)


CHANGES = (keep_an_attribute, keep_in_a_dict, keep_under_a_new_name, keep_a_buffer)


def facts(module: Module) -> tuple[dict[str, Any], dict[int, Tensor], dict[str, Tensor]]:
    return dict(vars(module)), dict(module.tables), dict(module._buffers)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("again", [False, True], ids=["noted anew", "an earlier note taken over"])
def test_what_comes_to_be_kept_is_gone(change, again):
    module, framework = Module(), Framework()
    earlier = KeptAttributes(framework, module)
    earlier.note(module)
    module.training = False  # the mode is none of what is kept
    kept = KeptAttributes(framework, module, earlier if again else None)
    kept.note(module)
    before = facts(module)
    change(module)
    kept.put_back()
    assert facts(module) == before


@pytest.mark.parametrize("change", CHANGES)
def test_an_earlier_note_of_what_has_changed_since_is_not_taken_over(change):
    module, framework = Module(), Framework()
    earlier = KeptAttributes(framework, module)
    earlier.note(module)
    change(module)
    kept = KeptAttributes(framework, module, earlier)
    kept.note(module)
    before = facts(module)
    module.table = Tensor(2.0)
    kept.put_back()
    assert facts(module) == before
    earlier.put_back()
    assert module.table is None
    assert not module.tables
    assert not module._buffers


def test_a_number_that_changes_with_no_tensor_stays():
    module, framework = Module(), Framework()
    kept = KeptAttributes(framework, module)
    kept.note(module)
    module.size = 5
    kept.put_back()
    assert module.size == 5
