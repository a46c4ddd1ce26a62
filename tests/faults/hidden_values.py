"""Ways to do something with a hidden value: right and wrong ones, for tests of what is said of them."""

from __future__ import annotations

from dataclasses import dataclass

from tests.faults.test_code import WIDTH, Forward, PaddleBlock, TorchBlock
from tests.faults.tools import align, numbers, seeded, the_cause


@dataclass(frozen=True)
class Way:
    """What a reference does with a hidden value, a port rightly and wrongly, and what is said of it."""

    reference: Forward
    right: Forward
    wrong: Forward
    code: str
    says: tuple[str, ...]
    fix: str = ""


def around(code: Forward) -> Forward:
    return lambda self, x: self.second(code(self, self.first(x)))


def check_it_is_named(way: Way) -> None:
    reference = seeded(lambda: TorchBlock(around(way.reference)))
    report = align(reference, PaddleBlock(around(way.wrong)), numbers(3, 5, WIDTH))
    cause = the_cause(report)
    assert cause.code == way.code, cause.message
    assert all(words in cause.message for words in way.says), cause.message
    assert cause.score_after <= report.limit == 4.0
    assert way.fix in cause.fix


def check_what_is_right_is_left_alone(way: Way) -> None:
    reference = seeded(lambda: TorchBlock(around(way.reference)))
    assert align(reference, PaddleBlock(around(way.right)), numbers(3, 5, WIDTH)).ok
