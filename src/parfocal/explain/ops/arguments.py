"""The arguments of an op besides tensors, under common names, and how to pass other values for them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from parfocal.backends import registry
from parfocal.explain.fixes.borders import BY_AXIS, axes_of, by_axis, listed
from parfocal.explain.ops.log import Op

Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class PassedArgument:
    """One argument: its value under the common name, and where it stands in the call."""

    name: str
    value: Any
    native: str | int  # keyword or position
    back: Convert


def _same(value: Any) -> Any:
    return value


# The frameworks' words -> common name, and the value's way there and back.
WORDS: dict[str, tuple[str, Convert, Convert]] = {
    "dim": ("axis", _same, _same),
    "dims": ("axis", _same, _same),
    "min": ("minimum", _same, _same),
    "max": ("maximum", _same, _same),
    "min_val": ("minimum", _same, _same),
    "max_val": ("maximum", _same, _same),
    "eps": ("epsilon", _same, _same),
    "is_test": ("training", lambda value: not value, lambda value: not value),
    "correction": ("unbiased", bool, int),
    **{f"{word}s": (word, _same, _same) for word in ("stride", "padding", "dilation")},
    "kernel_sizes": ("kernel_size", _same, _same),
    "stop": ("end", _same, _same),
    "num": ("steps", _same, _same),
    "ord": ("p", _same, _same),
    **dict.fromkeys(
        ("split_size_or_sections", "split_size", "num_or_sections", "chunks"), ("sections", _same, _same)
    ),
    "exclusive": ("count_include_pad", lambda value: not value, lambda value: not value),
    "approximate": (
        "approximate",
        lambda value: "tanh" if value in (True, "tanh") else "none",
        lambda value: value == "tanh",
    ),
}
# Names of what follows the tensor, for functions that have no signature to look at.
POSITIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("softmax", "log_softmax", "cumsum", "concat", "stack", "logsumexp"), ("axis",)),
    **dict.fromkeys(("mean", "sum", "amax", "amin", "max", "min"), ("axis", "keepdim")),
    **dict.fromkeys(("add", "sub", "rsub", "mul", "div", "rdiv", "pow", "rpow"), ("scalar",)),
    **dict.fromkeys(("var", "std"), ("axis", "unbiased", "keepdim")),
    **dict.fromkeys(("tril", "triu"), ("diagonal",)),
    "clamp": ("minimum", "maximum"),
    "roll": ("shifts", "axis"),
    "topk": ("k", "axis", "largest", "sorted"),
    **dict.fromkeys(("flip", "unbind", "cumprod", "argmax", "argmin"), ("axis",)),
    **dict.fromkeys(("squeeze", "unsqueeze", "argsort", "sort", "log_cumsum_exp"), ("axis",)),
    "norm": ("p", "axis", "keepdim"),
    "repeat_interleave": ("repeats", "axis"),
    "softplus": ("beta", "threshold"),
    "pixel_shuffle": ("upscale_factor",),
    "pixel_unshuffle": ("downscale_factor",),
    "one_hot": ("num_classes",),
    **dict.fromkeys(("index_select", "take_along_axis"), ("axis",)),
    **dict.fromkeys(("median", "nanmedian", "mode"), ("axis", "keepdim")),
    "kthvalue": ("k", "axis", "keepdim"),
    "quantile": ("q", "axis", "keepdim"),
    "cosine_similarity": ("other", "axis", "epsilon"),
    "linspace": ("end", "steps"),
    "split": ("sections", "axis"),
    "logit": ("epsilon",),
    "diff": ("n", "axis"),
    "nan_to_num": ("nan", "posinf", "neginf"),
    **dict.fromkeys(("getitem", "setitem"), ("index",)),
    **dict.fromkeys(("tril", "triu"), ("diagonal",)),
    "channel_shuffle": ("groups",),
    "leaky_relu": ("negative_slope",),
    **dict.fromkeys(("elu", "celu"), ("alpha",)),
    **dict.fromkeys(("hardshrink", "softshrink"), ("threshold",)),
    "batch_norm": ("mean", "variance", "weight", "bias", "is_test", "momentum", "epsilon"),
    "layer_norm": ("weight", "bias", "epsilon"),
    "group_norm": ("weight", "bias", "epsilon", "num_groups"),
    "instance_norm": ("weight", "bias", "epsilon"),
    "adaptive_avg_pool1d": ("output_size",),
    **{f"adaptive_max_pool{rank}d": ("output_size", "return_indices") for rank in (1, 2, 3)},
    **{f"conv{rank}d": ("weight", "bias", "stride", "padding", "dilation", "groups") for rank in (1, 2, 3)},
    **{
        f"conv{rank}d_transpose": (
            *("weight", "bias", "stride", "padding", "output_padding", "groups", "dilation"),
        )
        for rank in (1, 2, 3)
    },
    **{
        f"max_pool{rank}d": ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
        for rank in (1, 2, 3)
    },
    **{
        f"avg_pool{rank}d": (
            *("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"),
        )
        for rank in (1, 2, 3)
    },
}
# What these functions do when nothing is said.
DEFAULTS: dict[str, dict[str, Any]] = {
    "gelu": {"approximate": "none"},
    "norm": {"p": 2.0},
    **{name: {"mode": "min"} for name in ("median", "nanmedian")},  # of two in the middle
    "cosine_similarity": {"axis": 1},
    **{name: {"unbiased": True} for name in ("var", "std")},
    **{f"avg_pool{rank}d": {"ceil_mode": False, "count_include_pad": True} for rank in (1, 2, 3)},
}
FIRST = {"einsum": "equation", "linspace": "start"}  # what comes first, where it is no tensor
SCALAR_WORDS = {
    **dict.fromkeys(("y", "other", "other_var", "exponent"), "scalar"),
    **dict.fromkeys(("item", "key"), "index"),
}
_IGNORED = frozenset({"name", "out", "inplace", "_stacklevel", "dtype", "data_format"})


def said(op: Op, is_tensor: Callable[[object], bool]) -> dict[str, PassedArgument]:
    """Every argument that is no tensor and was given or has a default."""
    found: dict[str, PassedArgument] = {}
    for native, word, value in _named(op):
        if value is None or word in _IGNORED or _holds(value, is_tensor):
            continue
        word = SCALAR_WORDS.get(word, word) if op.name in POSITIONS else word
        name, there, back = WORDS.get(word, (word, _same, _same))
        if isinstance(value, str):
            back = _same  # the formula of GELU, say, by its name
        if (op.name, name) in READINGS:
            name, there, back = READINGS[op.name, name](op, value)
        found[name] = PassedArgument(name, _plain(there(value)), native, back)
    return found


def _by_axis(op: Op, pad: Any) -> Reading:
    """A list of paddings, whose order of axes depends on the framework."""
    rank = len(_shape(op))
    if not isinstance(pad, (list, tuple)) or len(pad) % 2 or not 2 <= len(pad) <= 2 * rank:
        return "pad", _same, _same
    framework = op.native.partition(".")[0]
    axes = axes_of(len(pad) // 2, rank, framework, {word: value for _, word, value in _named(op)})
    return (
        BY_AXIS,
        lambda value: by_axis(value, rank, axes),
        lambda borders: listed(borders, axes, framework),
    )


def _sizes(op: Op, sections: Any) -> Reading:
    """Parts of an axis: how many, how long, or the length of each."""
    words = {word: value for _, word, value in _named(op)}
    axis = words.get("axis", words.get("dim", 0))
    shape = _shape(op)
    length = shape[axis] if isinstance(axis, int) and -len(shape) <= axis < len(shape) else 0

    def there(value: Any) -> Any:
        if not isinstance(value, int) or not length:
            return tuple(value) if isinstance(value, (list, tuple)) else value
        framework, _, name = op.native.partition(".")
        by_length = name.rpartition(".")[2] in registry.dialect(framework).splits_by_length
        each = value if by_length else -(-length // value)
        return tuple(min(each, length - begin) for begin in range(0, length, each))

    return "sizes", there, list


def _shape(op: Op) -> tuple[int, ...]:
    return tuple(getattr(next(iter((*op.args, *op.kwargs.values())), None), "shape", ()))


Reading = tuple[str, Convert, Convert]  # common name, and the value's way there and back
# What can only be read together with the tensor.
READINGS: dict[tuple[str, str], Callable[[Op, Any], Reading]] = {
    ("pad", "pad"): _by_axis,
    ("split", "sections"): _sizes,
}


def told(op: Op, is_tensor: Callable[[object], bool]) -> dict[str, Any]:
    """The plain values of these arguments; of a module, its settings."""
    if op.is_module:
        return dict(op.bound)
    return {name: argument.value for name, argument in said(op, is_tensor).items()}


def unsaid(op: Op) -> list[str]:
    """Optional arguments that were not passed: their default is None."""
    parameters = None if op.function is None else _parameters(op.function)
    return [
        parameter.name
        for index, parameter in enumerate(parameters or ())
        if parameter.default is None
        and parameter.name not in _IGNORED
        and (index >= len(op.args) or op.args[index] is None)
        and op.kwargs.get(parameter.name) is None
    ]


def left_out(op: Op) -> dict[str, PassedArgument]:
    """The same arguments under common names, with None as their value."""
    words = ((word, *WORDS.get(word, (word, _same, _same))) for word in unsaid(op))
    return {name: PassedArgument(name, None, word, back) for word, name, _, back in words}


def default_of(op: Op, argument: PassedArgument) -> Any:
    """The default of an argument, under the common name; None where that is not known."""
    parameters = None if op.function is None else _parameters(op.function)
    for index, parameter in enumerate(parameters or ()):
        if argument.native in (index, parameter.name) and parameter.default is not inspect.Parameter.empty:
            _, there, _ = WORDS.get(parameter.name, (parameter.name, _same, _same))
            return None if parameter.default is None else _plain(there(parameter.default))
    return None


def retold(op: Op, argument: PassedArgument, value: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The op's arguments with one of them changed."""
    new = argument.back(value)
    if isinstance(argument.native, int) and argument.native < len(op.args):
        args = list(op.args)
        args[argument.native] = new
        return tuple(args), op.kwargs
    assert isinstance(argument.native, str)
    return op.args, {**op.kwargs, argument.native: new}


def place_name(index: int) -> str:
    """What an argument is called that has only a place in the call."""
    return f"argument {index}"


def _named(op: Op) -> Iterator[tuple[str | int, str, Any]]:
    """Native place, name and value of every argument; defaults included where they can be seen."""
    if op.name == "arange":
        yield from _of_a_range(op)
        return
    parameters = None if op.function is None else _parameters(op.function)
    if parameters is None:
        words = (FIRST.get(op.name, "tensor"), *POSITIONS.get(op.name, ()))
        for index, value in enumerate(op.args):
            yield index, words[index] if index < len(words) else place_name(index), value
        given = {**DEFAULTS.get(op.name, {}), **op.kwargs}
        for word, value in given.items():
            if word in op.kwargs or word not in words[: len(op.args)]:
                yield word, word, value
        return
    for index, parameter in enumerate(parameters):
        if index < len(op.args):
            yield index, parameter.name, op.args[index]
        elif parameter.name in op.kwargs:
            yield parameter.name, parameter.name, op.kwargs[parameter.name]
        elif parameter.default is not inspect.Parameter.empty:
            yield parameter.name, parameter.name, parameter.default
    known = {parameter.name for parameter in parameters}
    for word, value in op.kwargs.items():
        if word not in known:
            yield word, word, value


def _of_a_range(op: Op) -> Iterator[tuple[str | int, str, Any]]:
    """The arguments of ``arange``: a single number is the end; start and step have defaults."""
    numbers = list(takewhile(lambda value: isinstance(value, (int, float)), op.args))
    words = ("end",) if len(numbers) == 1 and "end" not in op.kwargs else ("start", "end", "step")
    given: dict[str, tuple[str | int, Any]] = {
        **{word: (index, value) for index, (word, value) in enumerate(zip(words, numbers, strict=False))},
        **{
            word: (word, op.kwargs[word])
            for word in ("start", "end", "step")
            if op.kwargs.get(word) is not None
        },
    }
    for word, default in (("start", 0), ("end", None), ("step", 1)):
        native, value = given.get(word, (word, default))
        yield native, word, value


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # written in C
        return None
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if any(parameter.kind not in (*plain, inspect.Parameter.KEYWORD_ONLY) for parameter in parameters):
        return None
    return parameters


def _holds(value: Any, is_tensor: Callable[[object], bool]) -> bool:
    if is_tensor(value):
        return True
    return isinstance(value, (list, tuple)) and any(_holds(item, is_tensor) for item in value)


def _plain(value: Any) -> Any:
    return tuple(_plain(item) for item in value) if isinstance(value, (list, tuple)) else value
