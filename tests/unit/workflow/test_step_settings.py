"""What steps of a data set say they are set to, and which of two sides differ in it."""

from __future__ import annotations

import enum

import numpy as np

from parfocal.judge.verdict import Grounds
from parfocal.workflow.step_settings import setting_causes, step_settings


class Mode(enum.Enum):
    NEAREST = "nearest"


class Step:
    def __init__(self, **settings):
        self.__dict__.update(settings)

    def __call__(self, value):
        raise AssertionError("nothing is run")


class Resize(Step):
    pass


class Crop(Step):
    pass


class Data:
    def __init__(self, *steps):
        self.transform = Step(transforms=list(steps))
        self.samples = [(f"{number}.png", number) for number in range(1000)]
        self.itself = self


def told(ours, theirs):
    return [each.message for each in setting_causes(step_settings(ours), step_settings(theirs))]


def test_a_setting_of_one_name_is_told_with_its_fix():
    ours, theirs = Data(Resize(size=18), Crop(size=(16, 16))), Data(Resize(size=20), Crop(size=[16, 16]))
    (cause,) = setting_causes(step_settings(ours), step_settings(theirs))
    assert cause.message == "Resize has size = 18 in the reference, 20 in the port"
    assert cause.fix == "write size=18 for the port's Resize"
    assert (cause.proof, cause.rests_on) == (None, Grounds.SETTINGS)


def test_steps_of_one_class_are_told_apart_and_found_behind_wrappers():
    ours, theirs = (
        {"inner": [Data(Resize(size=40), Crop(size=[16, 16]), Resize(size=last))]} for last in (8, 9)
    )
    assert told(ours, theirs) == ["Resize 2 has size = 8 in the reference, 9 in the port"]


def test_what_is_the_same_in_another_form_is_no_difference():
    ours = Data(Resize(size=(16, 16), interpolation=Mode.NEAREST, scale=(0.5, 1)))
    theirs = Data(Resize(size=[16, 16], interpolation="NEAREST", scale=[0.5, 1.0]))
    assert told(ours, theirs) == []


def test_what_cannot_be_compared_is_not_told():
    ours = Data(
        Resize(size=16, brightness=[0.7, 1.3], antialias=True, weight=np.ones(2), p=0.5), Crop(size=3)
    )
    theirs = Data(Resize(size=(16, 16), brightness=0.3, antialias=False, weight=np.zeros(2), prob=0.2))
    assert told(ours, theirs) == []


def test_an_unset_value_is_not_told():
    assert (
        told(Data(Resize(size=18, interpolation="bilinear")), Data(Resize(size=18, interpolation=None))) == []
    )
