"""Runs a command as on an older processor, or on one with another number of cores.

``python -m benchmarks.processors sse4 --threads 3 -- python -m pytest`` holds NumPy, both frameworks and
their libraries to SSE4.2. They then add up in another order, and every figure comes out a little different;
what is decided from the figures must not. ``PROCESSORS`` is the one table of how each library is held down.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from numpy._core import _multiarray_umath as umath

from parfocal.native.library import LIBRARY, VARIABLE

_SSE4 = frozenset({"SSSE3", "SSE41", "POPCNT", "SSE42", "X86_V2"})
_AVX2 = _SSE4 | {"AVX", "F16C", "FMA3", "AVX2", "X86_V3"}


@dataclass(frozen=True, slots=True)
class Processor:
    """What to set so that the libraries take a machine for this processor."""

    variables: Mapping[str, str]
    needs: str  # the feature, in NumPy's words, without which a machine cannot run it
    numpy_features: frozenset[str] | None  # that NumPy may use beyond those it cannot do without; None: all
    path: str  # of parfocal's own loops


PROCESSORS = {
    "sse4": Processor(
        {
            "ATEN_CPU_CAPABILITY": "default",
            "ONEDNN_MAX_CPU_ISA": "SSE41",
            "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",  # on Intel's processors
            "MKL_CBWR": "COMPATIBLE",  # on others
            "OPENBLAS_CORETYPE": "Nehalem",
        },
        "SSE42",
        _SSE4,
        "x86-64",
    ),
    "avx2": Processor(
        {
            "ATEN_CPU_CAPABILITY": "avx2",
            "ONEDNN_MAX_CPU_ISA": "AVX2",
            "MKL_ENABLE_INSTRUCTIONS": "AVX2",
            # paddle's MKL (2019) otherwise keeps to SSE2 on processors that are not Intel's
            "MKL_DEBUG_CPU_TYPE": "5",
            "OPENBLAS_CORETYPE": "Haswell",
        },
        "AVX2",
        _AVX2,
        "x86-64-v3",
    ),
    "avx512": Processor(
        {"MKL_DEBUG_CPU_TYPE": "7", "OPENBLAS_CORETYPE": "SkylakeX"}, "AVX512F", None, "x86-64-v4"
    ),
}


# Every variable that says what a library may use; those of one processor must not remain for another.
VARIABLES = frozenset(
    {name for processor in PROCESSORS.values() for name in processor.variables} | {"NPY_DISABLE_CPU_FEATURES"}
)


def environment(name: str, threads: int) -> dict[str, str]:
    """The variables that make this machine behave like the named processor with so many threads."""
    found = {
        **PROCESSORS[name].variables,
        "OMP_NUM_THREADS": str(threads),
        "MKL_DYNAMIC": "FALSE",  # else MKL takes no more threads than there are cores
        # more threads than cores must not wait for each other in a busy loop
        "OMP_WAIT_POLICY": "PASSIVE",
        # what torch.compile made for one processor does not compile for another
        "TORCHINDUCTOR_CACHE_DIR": os.path.join(tempfile.gettempdir(), f"torchinductor_parfocal_{name}"),
    }
    allowed = PROCESSORS[name].numpy_features
    chosen = frozenset(feature for feature in umath.__cpu_dispatch__ if umath.__cpu_features__[feature])
    disabled = () if allowed is None else chosen - allowed  # NumPy warns of others
    if LIBRARY is not None:
        found[VARIABLE] = PROCESSORS[name].path
    if disabled:
        found["NPY_DISABLE_CPU_FEATURES"] = " ".join(sorted(disabled))
    return found


def machine_lacks(processor: Processor) -> bool:
    """Whether this machine cannot do what the processor can."""
    return not umath.__cpu_features__.get(processor.needs)


def main(arguments: list[str] | None = None) -> NoReturn:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.processors", description=__doc__)
    parser.add_argument("processor", choices=PROCESSORS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("command", nargs="+", help="after --")
    options = parser.parse_args(arguments)
    if machine_lacks(PROCESSORS[options.processor]):
        needed = PROCESSORS[options.processor].needs
        parser.error(f"{options.processor} needs {needed}, which this machine ({platform.machine()}) has not")
    found = environment(options.processor, options.threads)
    print(" ".join(f"{name}={value!r}" for name, value in found.items()), file=sys.stderr, flush=True)
    usual = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    os.execvpe(options.command[0], options.command, {**usual, **found})


if __name__ == "__main__":
    main()
