"""How a loss is called: a function gets inputs and outputs, a loss layer gets the output and the labels.

``input_dict`` may hold labels beside the model's inputs. For a loss layer they are the entries that
the model's ``forward`` does not take or, where it takes all of them, the one with a label's name. For
a function they are entries with a label's name that ``forward`` does not take; anything else is an
input, and the model complains of one that it does not know.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from parfocal.backends.protocol import Backend
from parfocal.capture.nested_values import flatten
from parfocal.errors import InputError
from parfocal.phrases import phrase

LABEL_NAMES = ("label", "labels", "target", "targets")


def labels_of(backend: Backend, model: Any, loss: Any, input_dict: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys of the entries that are for the loss alone."""
    taken = inspect.signature(model.forward).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken):
        return ()
    names = {parameter.name for parameter in taken}
    return tuple(
        key for key in input_dict if key not in names and (backend.is_model(loss) or key in LABEL_NAMES)
    )


def call_loss(
    backend: Backend, loss: Any, inputs: Mapping[str, Any], labels: Mapping[str, Any], outputs: Any
) -> Any:
    """The loss as a scalar tensor; a dict holds it under "loss"."""
    if not backend.is_model(loss) or not (labels or backend.is_framework_layer(loss)):
        result = loss({**inputs, **labels}, outputs)
    else:
        result = loss(_output(backend, outputs), *_labels(backend, loss, inputs, labels))
    return result["loss"] if isinstance(result, Mapping) else result


def _labels(
    backend: Backend, loss: Any, inputs: Mapping[str, Any], labels: Mapping[str, Any]
) -> tuple[Any, ...]:
    if labels:
        return tuple(labels.values())
    named = [key for key in inputs if key in LABEL_NAMES]
    if len(named) != 1:
        raise InputError(
            phrase(
                "{kind} wants labels, and input_dict has none: {inputs} are the model's inputs",
                kind=type(loss).__name__,
                inputs=", ".join(inputs),
            ),
            hint=phrase(
                'add them under a name of their own, e.g. {{"x": images, "label": labels}}; or '
                "pass a function loss(inputs, outputs)"
            ),
        )
    return (inputs[named[0]],)


def _output(backend: Backend, outputs: Any) -> Any:
    tensors = [leaf for leaf in flatten(outputs).leaves.values() if backend.is_tensor(leaf)]
    if len(tensors) != 1:
        raise InputError(
            phrase("the model gives {count} tensors, and a loss layer takes one of them", count=len(tensors)),
            hint=phrase("pass a function loss(inputs, outputs) that picks the one that is meant"),
        )
    return tensors[0]
