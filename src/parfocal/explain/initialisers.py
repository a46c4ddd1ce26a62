"""Which initialiser drew a tensor's first values: the distribution, its scale and the common name.

Several seeds together give a sample. A family is told by its shape (kurtosis and bounds), a name by whether
the scale is the one that the initialiser's formula gives for the tensor's fans. Only NumPy and SciPy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np
import scipy  # loads its parts when they are first used

from parfocal.backends.protocol import Array
from parfocal.explain.causes import number
from parfocal.judge import limits
from parfocal.phrases import phrase

ENOUGH = limits.causes.INITIAL_ENOUGH.value
FEW = limits.causes.INITIAL_FEW.value
UNLIKELY = limits.causes.INITIAL_UNLIKELY.value
CLOSE = limits.causes.INITIAL_CLOSE.value
COARSEST = limits.causes.INITIAL_COARSEST.value


class InitialiserFamily(Enum):
    CONSTANT = "constant"
    FIXED = "fixed"  # the same numbers from every seed
    UNIFORM = "uniform"
    NORMAL = "normal"
    TRUNCATED = "truncated normal"
    OTHER = "random"


_NOT_DRAWN = (InitialiserFamily.CONSTANT, InitialiserFamily.FIXED)


@dataclass(frozen=True, slots=True)
class Fans:
    """Fan in and fan out: inputs of one output, and outputs of one input."""

    into: float
    out: float
    bias: bool = False  # of a vector beside the weight whose fans these are


@dataclass(frozen=True, slots=True)
class InitialDraws:
    """What is known of a tensor's first values, over all seeds."""

    values: Array  # flat, float64
    family: InitialiserFamily
    mean: float
    std: float
    name: str  # the initialiser's, or the family with its numbers
    exact_std: float | None = None  # of an initialiser that goes by the fans, whose name says no numbers

    def in_words(self) -> str:
        if self.exact_std is None:
            return self.name
        return phrase("{name} (std {std})", name=self.name, std=number(self.std))


def drawn(samples: list[Array], fans: Fans | None) -> InitialDraws:
    """One array a seed, all of one tensor."""
    values = np.concatenate([sample.reshape(-1) for sample in samples]).astype(np.float64)
    mean, std = float(values.mean()), float(values.std())
    family = _family(samples, values, mean, std)
    known = None
    if fans is not None and family not in _NOT_DRAWN:
        if ENOUGH <= values.size < FEW:
            family, known = _likely_initialiser(values, std, fans) or (family, None)
        known = known or _initialiser(family, values, mean, std, fans)
    if fans is not None and known is not None:
        return InitialDraws(values, family, mean, std, known, _scales(fans)[family, known])
    return InitialDraws(values, family, mean, std, _name(family, values, mean, std))


def _family(samples: list[Array], values: Array, mean: float, std: float) -> InitialiserFamily:
    if np.ptp(values) == 0.0:
        return InitialiserFamily.CONSTANT
    if len(samples) > 1 and all(np.array_equal(sample, samples[0]) for sample in samples[1:]):
        return InitialiserFamily.FIXED
    if values.size < ENOUGH:
        return InitialiserFamily.OTHER
    if values.size < FEW:
        as_uniform, as_normal = _fitted_likelihoods(values, std)
        whole = scipy.stats.uniform(values.min(), np.ptp(values))
        if as_uniform > as_normal and scipy.stats.kstest(values, whole.cdf).pvalue > UNLIKELY:
            return InitialiserFamily.UNIFORM
    error = math.sqrt(24 / values.size)  # of the kurtosis of normal numbers
    kurtosis = float(scipy.stats.kurtosis(values, fisher=False))
    reach = float(np.abs(values - mean).max()) / std
    if abs(kurtosis - 1.8) < max(0.05, CLOSE * error / 3) and reach < math.sqrt(3) * 1.05:
        return InitialiserFamily.UNIFORM
    if abs(kurtosis - 3.0) < max(0.1, CLOSE * error):
        expected = scipy.stats.norm.isf(1 / values.size)
        return (
            InitialiserFamily.TRUNCATED
            if values.size > 500 and reach < 0.7 * expected
            else InitialiserFamily.NORMAL
        )
    return (
        InitialiserFamily.TRUNCATED
        if kurtosis < 3.0 and reach < 2.6 and kurtosis > 2.0
        else InitialiserFamily.OTHER
    )


def _scales(fans: Fans) -> dict[tuple[InitialiserFamily, str], float]:
    """The standard deviation of every initialiser that goes by the tensor's fans."""
    into, out = max(fans.into, 1.0), max(fans.out, 1.0)
    if fans.bias:
        return {(InitialiserFamily.UNIFORM, phrase("uniform by fan-in")): 1 / math.sqrt(3 * into)}
    return {
        (InitialiserFamily.UNIFORM, phrase("Kaiming uniform, a=√5")): 1 / math.sqrt(3 * into),
        (InitialiserFamily.UNIFORM, phrase("Xavier uniform")): math.sqrt(2 / (into + out)),
        (InitialiserFamily.UNIFORM, phrase("Kaiming uniform")): math.sqrt(2 / into),
        (InitialiserFamily.UNIFORM, phrase("Kaiming uniform by fan-out")): math.sqrt(2 / out),
        (InitialiserFamily.NORMAL, phrase("Kaiming normal")): math.sqrt(2 / into),
        (InitialiserFamily.NORMAL, phrase("Xavier normal")): math.sqrt(2 / (into + out)),
        (InitialiserFamily.NORMAL, phrase("Kaiming normal by fan-out")): math.sqrt(2 / out),
        (InitialiserFamily.NORMAL, phrase("normal by fan-in")): math.sqrt(1 / into),
    }


FAN_INITIALISERS = tuple(
    name for bias in (False, True) for _, name in _scales(Fans(1.0, 1.0, bias))
)  # what an initialiser that goes by fans may be called


def _is_centred(values: Array, mean: float, std: float) -> bool:
    return abs(mean) < CLOSE * std / math.sqrt(values.size)


def _fitted_likelihoods(values: Array, std: float) -> tuple[float, float]:
    """The log-likelihoods of the values under a fitted uniform and a fitted normal distribution."""
    uniform = -values.size * math.log(float(np.ptp(values)))
    return uniform, -values.size * (math.log(std) + 0.5 * math.log(2 * math.pi * math.e))


def _likely_initialiser(values: Array, std: float, fans: Fans) -> tuple[InitialiserFamily, str] | None:
    """The initialiser by fans that explains a few numbers better than a distribution fitted to them.

    Bounds and shape of few numbers vary: 128 uniform numbers may look normal. A distribution with two numbers
    fitted to the values pays for these two (the Bayesian information criterion).
    """
    best, found = max(_fitted_likelihoods(values, std)) - math.log(values.size), None
    for (family, name), expected in _scales(fans).items():
        distribution = (
            scipy.stats.uniform(-math.sqrt(3) * expected, 2 * math.sqrt(3) * expected)
            if family is InitialiserFamily.UNIFORM
            else scipy.stats.norm(0.0, expected)
        )
        likelihood = float(distribution.logpdf(values).sum())
        if likelihood > best and scipy.stats.kstest(values, distribution.cdf).pvalue > UNLIKELY:
            best, found = likelihood, (family, name)
    return found


def _initialiser(family: InitialiserFamily, values: Array, mean: float, std: float, fans: Fans) -> str | None:
    """The name of the initialiser that goes by the fans and has this scale."""
    if not _is_centred(values, mean, std):
        return None
    error = min(COARSEST, CLOSE / math.sqrt(values.size))
    for (kind, name), expected in _scales(fans).items():
        if kind is family and abs(std / expected - 1) < error:
            return name
    return None


def _name(family: InitialiserFamily, values: Array, mean: float, std: float) -> str:
    if family is InitialiserFamily.CONSTANT:
        return phrase("constant {values}", values=number(float(values[0])))
    if family is InitialiserFamily.FIXED:
        return phrase("fixed numbers (std {std})", std=number(std))
    centred = _is_centred(values, mean, std)
    low, high = (float(f"{edge:.2g}") for edge in (values.min(), values.max()))
    texts = {
        InitialiserFamily.UNIFORM: phrase("uniform, {low} to {high}", low=number(low), high=number(high)),
        InitialiserFamily.NORMAL: phrase(
            "normal, {which}std {std}",
            which="" if centred else phrase("mean {mean}, ", mean=f"{mean:.2g}"),
            std=f"{std:.2g}",
        ),
        InitialiserFamily.TRUNCATED: phrase(
            "truncated normal, std {std}, within {low} to {high}",
            std=f"{std:.2g}",
            low=number(low),
            high=number(high),
        ),
        InitialiserFamily.OTHER: phrase(
            "random, {which}std {std}",
            which="" if centred else phrase("mean {mean}, ", mean=f"{mean:.2g}"),
            std=f"{std:.2g}",
        ),
    }
    return texts[family]


def differ_in_scale(ours: InitialDraws, theirs: InitialDraws) -> tuple[float, float]:
    """Two p-values that two samples are of one distribution: as they are, and scaled alike."""
    as_drawn = float(scipy.stats.ks_2samp(ours.values, theirs.values, method="asymp").pvalue)
    if not (ours.std and theirs.std):
        return as_drawn, 0.0
    shaped = [(each.values - each.mean) / each.std for each in (ours, theirs)]
    return as_drawn, float(scipy.stats.ks_2samp(*shaped, method="asymp").pvalue)
