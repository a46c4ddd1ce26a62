"""Running a model without leaving a trace in it: buffers and random states are put back."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from parfocal.backends.protocol import Backend


@contextmanager
def undisturbed(backend: Backend, model: Any) -> Iterator[None]:
    """Whatever the model does meanwhile to its buffers and to random generators is undone."""
    buffers = [
        (tensor.value, backend.to_array(tensor.value))
        for tensor in backend.state(model)
        if tensor.role == "buffer" and tensor.tied_to is None
    ]
    states = backend.rng_state(), random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        for value, array in buffers:
            backend.write(value, array)
        backend.set_rng_state(states[0])
        random.setstate(states[1])
        np.random.set_state(states[2])
