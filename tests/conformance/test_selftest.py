"""The check that ``parfocal doctor`` makes of every installed framework."""

from __future__ import annotations

import numpy as np
import pytest

from parfocal.backends import registry
from parfocal.capture.selftest import recorder_works


def test_recording_works(backend):
    tested = recorder_works(backend.name)
    assert (tested.problem, tested.calls, tested.tensors) == ("", 1, 2)


def test_wrong_values_are_noticed(backend, monkeypatch):
    """A recorder that keeps something else than was computed."""
    to_array = type(backend).to_array

    def off(self, tensor, **options):
        array = to_array(self, tensor, **options)
        return array + np.float32(0.5) if array.shape == (4, 3) else array

    monkeypatch.setattr(type(backend), "to_array", off)
    assert "output of a linear layer" in recorder_works(backend.name).problem


def test_what_a_broken_installation_raises_is_told(backend, monkeypatch):
    def broken(self, kind, settings):
        raise OSError("libfoo.so: cannot open shared object file")

    monkeypatch.setattr(type(backend), "layer", broken)
    assert recorder_works(backend.name).problem == "OSError: libfoo.so: cannot open shared object file"


def test_threads_and_devices(backend):
    assert backend.threads() >= 1
    assert backend.devices()[0] == "cpu"


@pytest.mark.parametrize("name", ["nothing"])
def test_a_framework_that_is_not_there(name):
    assert "there is no backend called 'nothing'" in recorder_works(name).problem
    assert name not in registry.names()
