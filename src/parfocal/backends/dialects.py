"""How code of a framework is written and its arguments are read: one table each, no framework imported.

Explanations write lines to paste and read what a call was told; weights read files. What they have to know
of a framework's spelling is a ``Dialect``, the ``DIALECT`` of ``<package of the backend>.dialect``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from parfocal.backends.optimizer_spelling import OptimizerSpelling

_ACTIVATIONS = (
    *("relu", "relu6", "leaky_relu", "elu", "celu", "selu", "gelu", "silu", "mish", "hardsigmoid"),
    *("hardswish", "hardtanh", "softplus", "softsign", "softmax", "log_softmax", "log_sigmoid"),
    *("tanhshrink", "hardshrink", "softshrink"),
)
POOLS = tuple(f"{kind}_pool{rank}d" for kind in ("max", "avg") for rank in (1, 2, 3))
ADAPTIVE_POOLS = tuple(f"adaptive_{name}" for name in POOLS)
_FUNCTIONAL = (*_ACTIVATIONS, *POOLS, *ADAPTIVE_POOLS, "interpolate", "pixel_shuffle", "normalize")
_PLAIN = (
    *("tanh", "sigmoid", "exp", "log", "sqrt", "rsqrt", "abs", "square", "sin", "cos", "erf", "sign"),
    *("neg", "floor", "ceil", "round", "mean", "sum", "amax", "amin", "cumsum", "logsumexp", "clamp"),
    *("triu", "tril", "flip", "roll", "var", "std", "median", "nanmedian", "kthvalue", "trunc"),
    *("prod", "quantile"),
)

# Of a list of so many paddings for so many axes, with the call's other arguments: the axes in its order.
PaddedAxes = Callable[[int, int, Mapping[str, Any]], Sequence[int]]


def functions(framework: str, **others: str) -> dict[str, str]:
    """The usual full names by common name; ``others`` are called otherwise."""
    functional = {name: f"{framework}.nn.functional.{name}" for name in _FUNCTIONAL}
    return {**functional, **{name: f"{framework}.{name}" for name in _PLAIN}, **others}


def from_the_last(count: int, rank: int, words: Mapping[str, Any]) -> Sequence[int]:
    """Axes of a list of paddings that begins with the last one."""
    return range(rank - 1, rank - 1 - count, -1)


@dataclass(frozen=True, slots=True)
class Scripting:
    """How a script of its own loads weights and turns arrays into tensors and back; templates."""

    load: str  # of {side}
    tensor: str  # of what is called {name!r}
    leaf: str  # likewise, one that gets a gradient
    array: str  # of what {call} gives


@dataclass(frozen=True, slots=True)
class Dialect:
    """A framework's spelling. Templates are filled in by ``str.format``."""

    name: str  # of the framework's module
    functions: Mapping[str, str] = field(default_factory=dict)  # full names by common names
    words: Mapping[str, str] = field(default_factory=dict)  # of arguments, where not the common ones
    values: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)  # said in other values
    axis: str = "axis"  # the word for it
    concat: str = "concat"
    permute: str = "transpose([{}])"  # a method, of axes
    shape: str = "[{}]"  # as methods take it
    counts: Callable[[Sequence[int]], object] = list  # as tile takes them
    cast: str = "astype({})"  # a method, of a dtype
    dtype_is_text: bool = True  # "float32" rather than framework.float32
    transposed_factor: str = "{}, transpose_y=True"  # the second factor of a matmul
    padded_axes: PaddedAxes = from_the_last
    fewest_padded: Callable[[int], int] = lambda rank: 1  # pairs that a list of paddings should have
    pad_formats: Mapping[int, str] = field(default_factory=dict)  # by rank, where it has to be said
    splits_by_length: frozenset[str] = frozenset()  # functions whose number is a length, not a count
    lengths_word: str | None = None  # what a recurrent layer takes the lengths of sequences by
    frozen: tuple[str, bool] = ("requires_grad", False)  # attribute and value of a parameter not trained
    rate_in_use: str = ""  # what a script reads the learning rate from
    optimizers: OptimizerSpelling = field(default_factory=OptimizerSpelling)
    momentum_of_old: bool = False  # a norm's momentum is the weight of the old value
    overwrite: tuple[str, str] | None = None  # a parameter's code, what it is overwritten with, the end
    overwrite_transposed: str = ""
    overwrite_picked: str = ""
    linear_layout: str = "out,in"  # how a linear layer's weight lies in a file
    linear_names: tuple[str, ...] = ()  # linear layers, where there are two whose weights lie differently
    stored_names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # kind -> name -> role
    stored_transposed: frozenset[str] = frozenset()  # kinds of which those lie the other way round
    script: Scripting | None = None

    @property
    def linear_layouts(self) -> tuple[str, str]:
        """The usual one first."""
        return (self.linear_layout, "in,out" if self.linear_layout == "out,in" else "out,in")

    def dtype(self, name: str, spell: Callable[[str], str | None]) -> str | None:
        """A dtype as it is written in a file whose imports ``spell`` knows."""
        return f'"{name}"' if self.dtype_is_text else spell(f"{self.name}.{name}")

    def permuting(self, axes: Sequence[int]) -> str:
        return self.permute.format(", ".join(map(str, axes)))
