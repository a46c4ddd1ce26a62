"""The options of ``auto_diff``, settled for one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from parfocal.compat.padiff.comparing import CompareConfig
from parfocal.compat.padiff.utils import log
from parfocal.errors import InputError
from parfocal.phrases import phrase

PHASES = ("both", "forward", "backward")
# Names that older documents use.
OLD_NAMES = {"auto_weights": "auto_init"}
_COMPARING = ("atol", "rtol", "compare_mode")


@dataclass(frozen=True)
class Options:
    """What one call of ``auto_diff`` does."""

    auto_init: bool
    single_step: bool
    use_loss: bool
    use_opt: bool
    diff_phase: str
    steps: int
    config: CompareConfig

    @classmethod
    def of(cls, given: Mapping[str, Any], *, use_loss: bool, use_opt: bool) -> Options:
        """The defaults with what was given; combinations without a meaning are put right, and said."""
        given = {**given.get("options", {}), **{key: given[key] for key in given if key != "options"}}
        named = {OLD_NAMES.get(key, key): value for key, value in given.items()}
        known = {field.name for field in fields(cls)} - {"config", "use_loss", "use_opt"}
        unknown = sorted(set(named) - known - set(_COMPARING))
        if unknown:
            raise InputError(
                phrase("auto_diff has no option called {unknown}", unknown=", ".join(map(repr, unknown))),
                hint=phrase("the options are: {known}", known=", ".join(sorted(known | set(_COMPARING)))),
            )
        config = CompareConfig.of({key: named[key] for key in _COMPARING if key in named})
        phase = named.get("diff_phase", "both")
        if phase not in PHASES:
            raise InputError(
                phrase(
                    "diff_phase is {phase}; the phases are: {phases}",
                    phase=repr(phase),
                    phases=", ".join(PHASES),
                )
            )
        single_step = bool(named.get("single_step", False))
        if not single_step and phase == "backward":
            phase = "both"
            log("  Not in single_step mode, diff_phase `backward` is not supported, set to `both` instead.")
        if phase == "forward" and use_opt:
            use_opt = False
            log("  Diff_phase is `forward`, optimizer will not be used.")
        steps = cls._steps(named.get("steps", 1), phase, use_opt)
        return cls(bool(named.get("auto_init", True)), single_step, use_loss, use_opt, phase, steps, config)

    @staticmethod
    def _steps(steps: int, phase: str, use_opt: bool) -> int:
        if steps < 1:
            raise InputError(phrase("steps is {steps}; it must be 1 or more", steps=steps))
        if steps > 1 and phase == "forward":
            log("  Diff_phase is `forward`, steps is set to `1`.")
            return 1
        if steps > 1 and not use_opt:
            log("  Steps is set to `1`, because optimizers are not given.")
            return 1
        return steps

    def shown(self) -> dict[str, Any]:
        """What the log shows, in its order."""
        own = {key: getattr(self, key) for key in ("auto_init", "single_step", "use_loss", "use_opt")}
        comparing = asdict(self.config)
        return {"atol": comparing.pop("atol"), **own, **comparing}
