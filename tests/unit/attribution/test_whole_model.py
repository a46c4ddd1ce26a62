"""What layers' errors may add up to at the ends of a model, and what they cannot explain."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from parfocal.attribution.measures import LIMIT, Measure
from parfocal.attribution.whole_model import SUMMED, WholeModelResult, WholeModelResults, _carried, _summing
from parfocal.judge.floors import NOTHING, Size

EPS = 2.0**-23


def measured(relative, direction="forward", floor=EPS, score=1.0):
    return Measure(
        *(1, 1, "output", "0", "0", direction, None),
        *(Size(score * floor, score * floor), Size(floor, floor)),
        relative=relative,
    )


def end(phase, relative, path="w"):
    """Of a result of typical size 1."""
    blank = Measure(-1, -1, "output", "", "", "forward", None, NOTHING, Size(EPS, EPS))
    return WholeModelResult(
        phase, path, path, replace(blank, error=Size(relative, relative), relative=relative)
    )


def scores(ends, measures, parameters=()):
    return [each.measure.score for each in _carried(ends, measures, list(parameters))]


def test_an_output_may_be_off_by_the_sum_of_all_forward_errors():
    layers = [measured(2 * EPS) for _ in range(50)]
    assert scores([end("forward", 100 * EPS)], layers) == [pytest.approx(1.0)]
    (far,) = scores([end("forward", 5000 * EPS)], layers)
    assert far > LIMIT


def test_backward_errors_do_not_excuse_an_output():
    layers = [measured(2 * EPS, "backward") for _ in range(50)]
    assert scores([end("forward", 100 * EPS)], layers) == [pytest.approx(100.0)]


def test_a_gradient_may_be_off_by_what_flips():
    layers = [measured(2 * EPS) for _ in range(50)]
    share = 100 * EPS
    assert scores([end("gradient", math.sqrt(share))], layers) == [pytest.approx(1.0)]
    (wrong,) = scores([end("gradient", 0.5)], layers)
    assert wrong > LIMIT


def test_a_gradient_that_its_own_layer_makes_of_rounding_alone():
    """The bias of keys in an attention, say: its true gradient is zero."""
    layers = [measured(2 * EPS) for _ in range(50)]
    noisy = WholeModelResult("gradient", "w", "w", measured(None, floor=1.0))
    other = WholeModelResult("gradient", "v", "v", measured(None, floor=1.0))
    assert scores([end("gradient", 1.3)], layers, [noisy])[0] < LIMIT
    assert scores([end("gradient", 1.3)], layers, [other])[0] > LIMIT


def test_one_tensor_of_nothing_but_rounding_excuses_nothing():
    layers = [*(measured(2 * EPS) for _ in range(50)), measured(1.0)]
    (far,) = scores([end("forward", 0.01)], layers)
    assert far > LIMIT


def test_models_that_agree_bit_by_bit_excuse_nothing():
    assert scores([end("forward", 100 * EPS)], []) == [pytest.approx(100.0)]


def test_what_could_not_be_compared_stays_infinite():
    absent = replace(end("gradient", 1.0), measure=measured(None, score=math.inf))
    assert scores([absent], [measured(EPS)]) == [math.inf]


def call(*shapes):
    values = {
        str(index): SimpleNamespace(
            data=SimpleNamespace(shape=shape, fingerprint=SimpleNamespace(size=math.prod(shape)))
        )
        for index, shape in enumerate(shapes)
    }
    return SimpleNamespace(outputs=values)


def test_terms_of_a_gradient_are_counted_by_the_places_of_the_output():
    images = call((4, 64, 56, 56))
    assert _summing([images], (64, 3, 7, 7)) == pytest.approx(SUMMED * math.sqrt(4 * 56 * 56))
    tokens = call((4, 128, 768))
    assert _summing([tokens], (768,)) == pytest.approx(SUMMED * math.sqrt(4 * 128))
    assert _summing([tokens, tokens], (768, 3072)) == pytest.approx(SUMMED * math.sqrt(2 * 4 * 128))


def test_no_axis_in_common_no_terms():
    assert _summing([call((4, 10, 8))], (32, 16)) == 0.0


class Shaken(WholeModelResults):
    """Ends with a given output that is far off; notes when the reference is shaken."""

    def __init__(self):
        nothing = SimpleNamespace(natural=None)
        super().__init__(nothing, nothing, None, None, None)
        self.shaken = 0

    def _raw(self, reference, port):
        yield end("forward", 1e-3)

    def _shaken(self, measures):
        self.shaken += 1

    def _moved(self, end, shaken):
        return Size(1e-3, 1e-3)

    def _without_vanishing(self, ends):
        return ends


def guilty(direction):
    return measured(1e-3, direction, score=1e4)


def test_what_can_only_follow_from_a_guilty_call_is_not_shaken():
    ends = Shaken()
    (found,) = ends.whole([measured(EPS), guilty("forward")], [])
    assert ends.shaken == 0
    assert found.measure.score > LIMIT


def test_the_error_of_a_guilty_call_is_no_noise():
    """An output that is off by less than the mistake makes is off all the same."""
    (found,) = Shaken().whole([guilty("forward")], [])
    assert found.measure.score == pytest.approx(1e-3 / EPS)


@pytest.mark.parametrize("measures", [[], [guilty("backward")]], ids=["none", "backward"])
def test_an_output_is_put_to_its_noise_where_no_call_going_forward_is_guilty(measures):
    ends = Shaken()
    (found,) = ends.whole([measured(EPS), *measures], [])
    assert ends.shaken == 1
    assert found.measure.score == pytest.approx(1.0)


def test_a_gradient_of_a_parameter_alone_does_not_make_outputs_wrong():
    ends = Shaken()
    ends.whole([measured(EPS)], [WholeModelResult("gradient", "w", "w", measured(None, score=1e4))])
    assert ends.shaken == 1
