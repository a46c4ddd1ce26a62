"""The models of the benchmark: a convolutional net, a perceptron, a Llama in small, and a tagger.

Each is a function from a ``Kit`` and changes to a model. A change is a mistake, or another way to write the
same; what it is called says what it does. Without changes all are correct.
"""

from __future__ import annotations

from typing import Any

from benchmarks.recorded_runs.kits import Kit

CLASSES = 5
WORDS = 23
SIZE, HEADS, GROUPS = 72, 4, 2  # a square matrix of this size is too large to be kept beside its sketch


def perceptron(kit: Kit, **changes: Any) -> Any:
    """Three layers with a residual connection; ``hidden`` is square."""

    class Perceptron(kit.base):
        def __init__(self) -> None:
            super().__init__()
            self.first = kit.linear(12, SIZE)
            self.norm = kit.nn.LayerNorm(SIZE, changes.get("epsilon", 1e-5))
            self.hidden = kit.linear(SIZE, SIZE)
            self.act = (
                kit.nn.ReLU() if "activation" not in changes else getattr(kit.nn, changes["activation"])()
            )
            self.wide = kit.linear(SIZE, SIZE)
            self.head = kit.linear(SIZE, CLASSES)

        def forward(self, x: Any) -> Any:
            x = self.norm(self.first(x))
            inner = self.hidden(x.detach() if changes.get("detach") == "hidden" else x)
            if "hook" in changes:
                inner.register_hook(lambda gradient: gradient * changes["hook"])
            inner = self.act(inner)
            x = inner if changes.get("no_residual") else inner + x
            if changes.get("detach") == "wide":
                x = x.detach()
            return self.head(x * 0.5 + kit.library.tanh(self.wide(x)))

    return Perceptron()


def nested_perceptron(kit: Kit, **changes: Any) -> Any:
    """The same by other names, in another nesting, with functions where the other has layers."""

    class Body(kit.base):
        def __init__(self) -> None:
            super().__init__()
            self.stem = kit.nn.Sequential(kit.linear(12, SIZE), kit.nn.LayerNorm(SIZE, 1e-5))
            self.inner = kit.linear(SIZE, SIZE)

        def forward(self, x: Any) -> Any:
            x = self.stem(x)
            return kit.functional.relu(self.inner(x)) + x

    class Nested(kit.base):
        def __init__(self) -> None:
            super().__init__()
            self.body = Body()
            self.expand = kit.linear(SIZE, SIZE)
            self.classifier = kit.linear(SIZE, CLASSES)

        def forward(self, x: Any) -> Any:
            x = self.body(x)
            return self.classifier(kit.library.tanh(self.expand(x)) + x * 0.5)

    return Nested()


def convolutional(kit: Kit, **changes: Any) -> Any:
    """Two convolutions with batch normalisation; ``last`` computes with channels last (paddle only)."""
    last = {"data_format": "NHWC"} if changes.get("last") else {}

    def convolution(inputs: int, outputs: int, **options: Any) -> Any:
        return kit.conv(inputs, outputs, 3, padding=1, **options, **last)

    def normalisation(size: int, wrong: bool) -> Any:
        options = {"epsilon": changes["epsilon"]} if wrong and "epsilon" in changes else {}
        momentum = changes.get("momentum", 0.1) if wrong else 0.1
        return kit.batch_norm(size, momentum=momentum, **options, **last)

    class Convolutional(kit.base):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = convolution(3, 6, stride=changes.get("stride", 1))
            self.bn1 = normalisation(6, False)
            self.act1 = kit.nn.ReLU()
            self.conv2 = convolution(6, 6)
            self.bn2 = normalisation(6, True)
            self.act2 = getattr(kit.nn, changes.get("activation", "ReLU"))()
            self.head = kit.linear(6, CLASSES)

        def forward(self, x: Any) -> Any:
            if last:
                x = kit.permute(x, (0, 2, 3, 1))
            x = self.act1(self.bn1(self.conv1(x)))
            if "hook" in changes:
                x.register_hook(lambda gradient: gradient * changes["hook"])
            inner = self.bn2(self.conv2(x))
            x = self.act2(inner if changes.get("no_residual") else inner + x)
            if changes.get("pool") == "max":
                return self.head(x.amax((1, 2) if last else (2, 3)))
            return self.head(x.mean((1, 2) if last else (2, 3)))

    return Convolutional()


def tagger(kit: Kit, **changes: Any) -> Any:
    """Words to states to tags; ``reverse`` reads backward, ``flip`` gives tags from the end."""

    class Tagger(kit.base):
        def __init__(self) -> None:
            super().__init__()
            self.embed = kit.nn.Embedding(WORDS, 8)
            self.rnn = kit.gru(8, SIZE)
            self.mix = kit.linear(SIZE, SIZE)
            self.head = kit.linear(SIZE, CLASSES)

        def forward(self, ids: Any) -> Any:
            x = self.embed(ids) * changes.get("scale", 1.0)
            x, _ = self.rnn(kit.library.flip(x, [1]) if changes.get("reverse") else x)
            x = kit.library.tanh(self.mix(x.detach() if changes.get("detach") else x))
            y = self.head(x)
            return kit.library.flip(y, [1]) if changes.get("flip") else y

    return Tagger()


def llama(kit: Kit, **changes: Any) -> Any:
    """Two blocks with rotary tables and grouped keys; changes of a block are those of ``wrong_layer``."""
    wrong_layer = changes.get("wrong_layer", 0)
    names = changes.get("names", {})
    library = kit.library

    class Norm(kit.base):
        def __init__(self, epsilon: float) -> None:
            super().__init__()
            self.weight = kit.scale(SIZE)
            self.variance_epsilon = epsilon

        def forward(self, x: Any) -> Any:
            return self.weight * (x * library.rsqrt((x * x).mean(-1, keepdim=True) + self.variance_epsilon))

    class Rotary(kit.base):
        """Tables of one sample, or of every sample: they broadcast."""

        def __init__(self) -> None:
            super().__init__()
            self.base = changes.get("base", 100.0)

        def forward(self, ids: Any) -> tuple[Any, Any]:
            width = SIZE // HEADS
            powers = library.arange(0, width, 2, dtype=library.float32) / width
            positions = library.arange(ids.shape[1], dtype=library.float32).unsqueeze(-1)
            angles = (positions * (1.0 / self.base**powers)).unsqueeze(0)
            if changes.get("tables") == "of every sample":
                angles = kit.join([angles] * ids.shape[0], 0)
            table = kit.join([angles, angles], -1)
            return library.cos(table), library.sin(table)

    class Attention(kit.base):
        def __init__(self, wrong: dict[str, Any]) -> None:
            super().__init__()
            self.has = wrong.__contains__  # a method is no setting that a recording could give away
            self.scaling = wrong.get("scaling", (SIZE // HEADS) ** -0.5)
            kept = SIZE // HEADS * GROUPS
            self.q = kit.linear(SIZE, SIZE, bias=False)
            self.k = kit.linear(SIZE, kept, bias=False)
            self.v = kit.linear(SIZE, kept, bias=False)
            self.o = kit.linear(SIZE, SIZE, bias=False)

        def split(self, x: Any, heads: int) -> Any:
            if self.has("heads_inner") and heads == HEADS:
                x = x.reshape([x.shape[0], x.shape[1], SIZE // HEADS, heads])
                return kit.permute(x, (0, 3, 1, 2))
            return kit.permute(x.reshape([x.shape[0], x.shape[1], heads, SIZE // HEADS]), (0, 2, 1, 3))

        def rotate(self, x: Any, tables: tuple[Any, Any]) -> Any:
            cos, sin = (table.unsqueeze(1) for table in tables)
            half = x.shape[-1] // 2
            sign = 1.0 if self.has("rotation") else -1.0
            return x * cos + kit.join([sign * x[..., half:], x[..., :half]], -1) * sin

        def share(self, x: Any) -> Any:
            """Every key for as many queries as share it."""
            if self.has("tiled"):
                return kit.join([x] * (HEADS // GROUPS), 1)
            return library.repeat_interleave(x, HEADS // GROUPS, 1)

        def forward(self, x: Any, tables: tuple[Any, Any]) -> Any:
            q = self.rotate(self.split(self.q(x), HEADS), tables)
            k = self.share(self.rotate(self.split(self.k(x), GROUPS), tables))
            v = self.share(self.split(self.v(x), GROUPS))
            scores = q @ kit.permute(k, (0, 1, 3, 2)) * self.scaling
            if not self.has("no_mask"):
                time = x.shape[1]
                past = 2 if self.has("mask_offset") else 1
                scores = scores + library.triu(library.full([time, time], -1e9), past)
            mixed = kit.permute(kit.functional.softmax(scores, -1) @ v, (0, 2, 1, 3))
            return self.o(mixed.reshape([x.shape[0], x.shape[1], SIZE]))

    class Feed(kit.base):
        def __init__(self, wrong: dict[str, Any]) -> None:
            super().__init__()
            self.activate = getattr(kit.functional, wrong.get("activation", "silu"))
            self.gate = kit.linear(SIZE, 24, bias=False)
            self.up = kit.linear(SIZE, 24, bias=False)
            self.down = kit.linear(24, SIZE, bias=False)

        def forward(self, x: Any) -> Any:
            return self.down(self.activate(self.gate(x)) * self.up(x))

    class Block(kit.base):
        def __init__(self, wrong: dict[str, Any]) -> None:
            super().__init__()
            self.has = wrong.__contains__
            setattr(self, names.get("attention", "attention"), Attention(wrong))
            setattr(self, names.get("feed", "feed"), Feed(wrong))
            self.norm1 = Norm(wrong.get("epsilon", 1e-5))
            self.norm2 = Norm(1e-5)

        def forward(self, x: Any, tables: tuple[Any, Any]) -> Any:
            attention = getattr(self, names.get("attention", "attention"))
            feed = getattr(self, names.get("feed", "feed"))
            mixed = attention(self.norm1(x), tables)
            if self.has("detach_attention"):
                mixed = mixed.detach()
            x = mixed if self.has("no_residual") else x + mixed
            fed = feed(x if self.has("no_second_norm") else self.norm2(x))
            if self.has("hook"):
                fed.register_hook(lambda gradient: gradient * 0.5)
            return x + fed

    class Llama(kit.base):
        def __init__(self) -> None:
            super().__init__()
            self.embed = kit.nn.Embedding(WORDS, SIZE)
            self.rotary = Rotary()
            blocks = [Block(changes if number == wrong_layer else {}) for number in range(2)]
            setattr(self, names.get("layers", "layers"), kit.modules(blocks))
            self.norm = Norm(1e-5)
            if not changes.get("tied"):
                self.head = kit.linear(SIZE, WORDS, bias=False)

        def forward(self, ids: Any) -> Any:
            x, tables = self.embed(ids), self.rotary(ids)
            for block in getattr(self, names.get("layers", "layers")):
                x = block(x, tables)
            x = self.norm(x)
            if changes.get("tied"):
                # kept small: paddle's cross entropy of one row ends at 64
                return x @ kit.permute(self.embed.weight, (1, 0)) * SIZE**-0.5
            y = self.head(x)
            return library.roll(y, 1, -1) if changes.get("rolled") else y

    return Llama()
