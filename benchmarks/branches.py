"""A small network of branches that are joined again, written once for both frameworks.

Separable convolutions as an Xception has them, branches of several widths as an Inception has them.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

STAGES = (32, 64), (64, 128), (128, 128), (128, 128)


def build(framework: ModuleType) -> Any:
    """With torch or paddle."""
    nn, is_torch = framework.nn, framework.__name__ == "torch"
    base = nn.Module if is_torch else nn.Layer
    convolution = nn.Conv2d if is_torch else nn.Conv2D
    norm, pool = (nn.BatchNorm2d, nn.AvgPool2d) if is_torch else (nn.BatchNorm2D, nn.AvgPool2D)
    listed = nn.ModuleList if is_torch else nn.LayerList
    unbiased = {"bias": False} if is_torch else {"bias_attr": False}

    class Unit(base):  # type: ignore[misc, valid-type]
        def __init__(self, taken: int, given: int, kernel: int, groups: int = 1) -> None:
            super().__init__()
            self.convolution = convolution(
                taken, given, kernel, padding=kernel // 2, groups=groups, **unbiased
            )
            self.norm, self.activation = norm(given), nn.ReLU()

        def forward(self, x: Any) -> Any:
            return self.activation(self.norm(self.convolution(x)))

    class Block(base):  # type: ignore[misc, valid-type]
        def __init__(self, taken: int, given: int) -> None:
            super().__init__()
            part = given // 4
            self.one, self.before = Unit(taken, part, 1), Unit(taken, part, 1)
            self.three, self.five = Unit(part, part, 3), Unit(taken, part, 5)
            self.deep, self.wide = Unit(taken, taken, 3, taken), Unit(taken, part, 1)

        def forward(self, x: Any) -> Any:
            branches = [self.one(x), self.three(self.before(x)), self.five(x), self.wide(self.deep(x))]
            return framework.cat(branches, 1) if is_torch else framework.concat(branches, 1)

    class Branches(base):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            super().__init__()
            self.stem, self.pool = Unit(3, STAGES[0][0], 3), pool(2)
            self.blocks = listed([Block(*widths) for widths in STAGES])
            self.head = nn.Linear(STAGES[-1][1], 100)

        def forward(self, x: Any) -> Any:
            x = self.stem(x)
            for index, block in enumerate(self.blocks):
                x = block(self.pool(x) if index < 2 else x)
            return self.head(x.mean((2, 3)))

    return Branches()
