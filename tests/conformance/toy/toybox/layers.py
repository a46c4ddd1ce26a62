"""Layers: a base class that keeps parameters, buffers and other layers by name, and a handful to use."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from toybox import functions, tape
from toybox.tape import Handle, Tensor, hook_on


class Parameter(Tensor):
    """A tensor that is learned."""

    def __init__(self, data: Any) -> None:
        super().__init__(data, requires_grad=True)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        twin = Parameter(self.data.copy())
        twin.requires_grad = self.requires_grad
        memo[id(self)] = twin
        return twin


class Layer:
    """What is assigned finds its place by itself: parameters, layers, everything else."""

    training: bool

    def __init__(self) -> None:
        vars(self).update(
            training=True,
            _parameters={},
            _buffers={},
            _passing=set(),  # names of buffers that are not saved
            _layers={},
            _forward_pre_hooks={},
            _forward_hooks={},
            _surrounding_hooks={},
        )

    def __setattr__(self, name: str, value: Any) -> None:
        places = ((Parameter, self._parameters), (Layer, self._layers))
        for kind, place in places:
            if isinstance(value, kind):
                vars(self).pop(name, None)
                place[name] = value
                return
            place.pop(name, None)
        if name in self._buffers:
            self._buffers[name] = value
        else:
            vars(self)[name] = value

    def __getattr__(self, name: str) -> Any:
        for place in ("_parameters", "_buffers", "_layers"):
            if name in vars(self).get(place, {}):
                return vars(self)[place][name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        for place in (vars(self), self._parameters, self._buffers, self._layers):
            if name in place:
                del place[name]
                return
        raise AttributeError(name)

    def add_buffer(self, name: str, value: Tensor, *, saved: bool = True) -> None:
        self._buffers[name] = value
        if not saved:
            self._passing.add(name)

    def layers(self) -> Iterator[Layer]:
        yield self
        for layer in self._layers.values():
            yield from layer.layers()

    def parameters(self) -> Iterator[Parameter]:
        for layer in self.layers():
            yield from layer._parameters.values()

    def train(self, on: bool = True) -> Layer:
        for layer in self.layers():
            layer.training = on
        return self

    def eval(self) -> Layer:
        return self.train(False)

    def register_forward_pre_hook(self, hook: Any) -> Handle:
        return hook_on(self._forward_pre_hooks, hook)

    def register_forward_hook(self, hook: Any) -> Handle:
        return hook_on(self._forward_hooks, hook)

    def register_surrounding(self, surround: Any) -> Handle:
        """A hook around everything else: ``surround(layer, call, args, kwargs)`` gives the output."""
        return hook_on(self._surrounding_hooks, surround)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self._with_hooks
        for surround in self._surrounding_hooks.values():
            call = functools.partial(surround, self, call)
        return call(args, kwargs)

    def _with_hooks(self, args: Any, kwargs: Any) -> Any:
        for hook in list(self._forward_pre_hooks.values()):
            replaced = hook(self, args)
            if replaced is not None:
                args = replaced if isinstance(replaced, tuple) else (replaced,)
        output = self.forward(*args, **kwargs)
        for hook in list(self._forward_hooks.values()):
            replaced = hook(self, args, output)
            output = output if replaced is None else replaced
        return output

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def _drawn(*shape: int, fan: int) -> Parameter:
    limit = 1 / np.sqrt(fan)
    return Parameter(tape.generator.uniform(-limit, limit, shape).astype("float32"))


class Dense(Layer):
    """y = x W + b, with W as (inputs, outputs)."""

    def __init__(self, inputs: int, outputs: int, *, with_bias: bool = True) -> None:
        super().__init__()
        self.inputs, self.outputs = inputs, outputs
        self.weight = _drawn(inputs, outputs, fan=inputs)
        if with_bias:
            self.bias = _drawn(outputs, fan=inputs)
        else:
            self.bias = None

    def forward(self, x: Tensor) -> Tensor:
        product = functions.matmul(x, self.weight)
        return product if self.bias is None else functions.add(product, self.bias)


class Convolution(Layer):
    def __init__(self, inputs: int, outputs: int, window: int, *, step: int = 1, border: int = 0) -> None:
        super().__init__()
        self.inputs, self.outputs, self.window, self.step, self.border = inputs, outputs, window, step, border
        self.weight = _drawn(outputs, inputs, window, window, fan=inputs * window * window)
        self.bias = _drawn(outputs, fan=inputs * window * window)

    def forward(self, x: Tensor) -> Tensor:
        return functions.convolve(x, self.weight, self.bias, self.step, self.border)


class LayerNorm(Layer):
    def __init__(self, size: int, *, tiny: float = 1e-5) -> None:
        super().__init__()
        self.size, self.tiny = size, tiny
        self.weight = Parameter(np.ones(size, "float32"))
        self.bias = Parameter(np.zeros(size, "float32"))

    def forward(self, x: Tensor) -> Tensor:
        return functions.layer_norm(x, self.weight, self.bias, self.tiny)


class BatchNorm(Layer):
    """Over all axes but the second."""

    def __init__(self, channels: int, *, tiny: float = 1e-5, renewal: float = 0.1) -> None:
        super().__init__()
        self.channels, self.tiny, self.renewal = channels, tiny, renewal
        self.weight = Parameter(np.ones(channels, "float32"))
        self.bias = Parameter(np.zeros(channels, "float32"))
        self.add_buffer("running_mean", Tensor(np.zeros(channels, "float32")))
        self.add_buffer("running_var", Tensor(np.ones(channels, "float32")))

    def forward(self, x: Tensor) -> Tensor:
        axes = (0, *range(2, len(x.shape)))
        shape = (1, -1, *(1,) * (len(x.shape) - 2))
        if self.training:
            mean = functions.mean(x, axes, True)
            variance = functions.mean(functions.pow(functions.sub(x, mean), 2), axes, True)
            self._renew(mean.data.reshape(-1), variance.data.reshape(-1), x.data.size // self.channels)
        else:
            mean, variance = (functions.reshape(each, shape) for each in self._buffers.values())
        normal = functions.div(functions.sub(x, mean), functions.sqrt(functions.add(variance, self.tiny)))
        scaled = functions.mul(normal, functions.reshape(self.weight, shape))
        return functions.add(scaled, functions.reshape(self.bias, shape))

    def _renew(self, mean: Any, variance: Any, count: int) -> None:
        for kept, new in (
            (self.running_mean, mean),
            (self.running_var, variance * count / max(count - 1, 1)),
        ):
            kept.data[...] = (1 - self.renewal) * kept.data + self.renewal * new
            kept.changes.count += 1


class Embedding(Layer):
    def __init__(self, rows: int, size: int) -> None:
        super().__init__()
        self.rows, self.size = rows, size
        self.weight = Parameter(tape.generator.normal(size=(rows, size)).astype("float32"))

    def forward(self, rows: Tensor) -> Tensor:
        return functions.lookup(self.weight, rows)


class ReLU(Layer):
    def forward(self, x: Tensor) -> Tensor:
        return functions.relu(x)


class GELU(Layer):
    def forward(self, x: Tensor) -> Tensor:
        return functions.gelu(x)


class Dropout(Layer):
    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return functions.dropout(x, self.p, self.training)


class Flatten(Layer):
    """All axes but the first become one."""

    def forward(self, x: Tensor) -> Tensor:
        return functions.reshape(x, x.shape[0], -1)


class Chain(Layer):
    """One after the other."""

    def __init__(self, *layers: Layer) -> None:
        super().__init__()
        for number, layer in enumerate(layers):
            setattr(self, str(number), layer)

    def __getitem__(self, number: int) -> Layer:
        return list(self._layers.values())[number]

    def __len__(self) -> int:
        return len(self._layers)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self._layers.values():
            x = layer(x)
        return x


class Residual(Layer):
    """A layer and what goes around it."""

    def __init__(self, inner: Layer) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return functions.add(x, self.inner(x))
