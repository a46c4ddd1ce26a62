"""Comparing two reports: forward from the whole model down, backward from its end to its start.

A pair of calls that agrees is not looked into. A pair that differs is taken apart, and the first
pair inside that differs is reported; when all inside agree, the difference is made by the module's
own code. After a single step every call was given the base's values, so there the inner calls
come first and speak for themselves.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parfocal.compat.opinion import opinion_on_values, tell
from parfocal.compat.padiff.checker.dumps import Dump, paired_dumps
from parfocal.compat.padiff.checker.layer_maps import check_layer_map, mapped_paths
from parfocal.compat.padiff.checker.telling import tell_hidden
from parfocal.compat.padiff.checker.trees import write_trees
from parfocal.compat.padiff.comparing import CHECK_DEFAULT, CompareConfig, compare
from parfocal.compat.padiff.pairing import Pairs, pair_calls
from parfocal.compat.padiff.partners import Partners
from parfocal.compat.padiff.utils import log
from parfocal.errors import EmptyComparisonError, InputError
from parfocal.judge.floors import rounding_score
from parfocal.phrases import phrase

PHASES = ("forward", "backward", "both")


@dataclass(frozen=True, eq=False)
class CallNode:
    """A call in a report, as pairing wants to see it."""

    entry: Mapping[str, Any]
    children: tuple[CallNode, ...]

    @property
    def path(self) -> str:
        return str(self.entry["route"])

    @property
    def layer_type(self) -> str:
        return str(self.entry["type"])

    @property
    def net_id(self) -> int:
        return int(self.entry["metas"]["net_id"])

    @property
    def kind(self) -> str:
        return str(self.entry.get("kind", self.entry["name"]))

    @property
    def builtin(self) -> bool:
        return bool(self.entry.get("builtin", False))

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> CallNode:
        return cls(entry, tuple(cls.of(child) for child in entry["children"]))


@dataclass(frozen=True, slots=True)
class TensorDifference:
    """How two tensors differ: in words, and in units of their values' rounding where that is known."""

    text: str
    score: float | None = None


@dataclass(frozen=True)
class FirstDifference:
    """The pair of calls at which the models part."""

    base: CallNode
    raw: CallNode
    difference: TensorDifference
    message: str = ""


def check_report(
    report_path_0: str | os.PathLike[str],
    report_path_1: str | os.PathLike[str],
    cfg: Mapping[str, Any] | None = None,
    diff_phase: str = "both",
    *,
    single_step: bool = False,
    partners: Partners | None = None,
    opinion: bool = True,
) -> bool:
    """Whether the reports of every step and rank agree. ``cfg`` holds for this call alone.

    ``partners`` says which routes hold the same weights, where that is known. With ``opinion`` a failure
    is followed by parfocal's own line about the two tensors.
    """
    if diff_phase not in PHASES:
        raise InputError(
            phrase(
                "Illegal diff_phase {diff_phase}; the phases are: {phases}",
                diff_phase=repr(diff_phase),
                phases=", ".join(PHASES),
            )
        )
    config = CompareConfig.of(cfg, CHECK_DEFAULT)
    log(f"check cfg {config.as_dict()}")
    agree = True
    for dumps in paired_dumps(report_path_0, report_path_1, "report.json"):
        log(f"Checking report in {dumps[0].folder} and {dumps[1].folder}")
        agree &= _ReportCheck(dumps, config, single_step, partners, opinion).run(diff_phase)
    return agree


class _ReportCheck:
    """One pair of reports."""

    def __init__(
        self,
        dumps: tuple[Dump, Dump],
        config: CompareConfig,
        single_step: bool,
        partners: Partners | None,
        opinion: bool,
    ) -> None:
        self.dumps = dumps
        self.config = config
        self.single_step = single_step
        self.partners = partners
        self.opinion = opinion
        self.layer_map = mapped_paths(dumps)
        self.hidden: list[str] = []
        self.compared = 0

    def run(self, phase: str) -> bool:
        check_layer_map(self.dumps)
        roots = [[CallNode.of(entry) for entry in dump.document["tree"]] for dump in self.dumps]
        if len(roots[0]) != len(roots[1]):
            log(f"FAILED !!! base_model was called {len(roots[0])} times, raw_model {len(roots[1])} times.")
            return False
        stages = [stage for stage in ("Forward", "Backward") if phase in (stage.lower(), "both")]
        if "Backward" in stages and any(dump.foreign and dump.framework == "torch" for dump in self.dumps):
            log("A torch dump of PaDiff itself holds no gradients of layer inputs: they are not compared.")
            stages.remove("Backward")
        for base, raw in zip(*roots, strict=True):
            for stage in stages:
                if not self._stage(stage, base, raw):
                    log(f"The {stage.lower()} stage comparing failed !!!")
                    return False
        if not self.compared:
            self._tell_nothing(phase)
        tell_hidden(self.hidden, self.config)
        return True

    def _tell_nothing(self, phase: str) -> None:
        if self.single_step and phase == "backward":  # the forward was compared before
            log(
                "No gradient reached the input of a layer: the backward stage has the grads alone to compare."
            )
            return
        raise EmptyComparisonError(
            phrase(
                "no tensor of {folder} was compared with one of {other}",
                folder=self.dumps[0].folder,
                other=self.dumps[1].folder,
            ),
            hint=phrase("check the black and white lists, and that the models were called before the dump"),
        )

    def _stage(self, stage: str, base: CallNode, raw: CallNode) -> bool:
        search = self._innermost_first if self.single_step else self._outermost_first
        found = search(stage, base, raw)
        if found is None:
            return True
        self._print(found, stage)
        return False

    def _outermost_first(self, stage: str, base: CallNode, raw: CallNode) -> FirstDifference | None:
        difference, compared = self._compare(stage, base, raw)
        if difference is None and compared:
            return None
        inner = self._inside(stage, base, raw, self._outermost_first)
        if isinstance(inner, FirstDifference) or difference is None:
            return inner if isinstance(inner, FirstDifference) else None
        return FirstDifference(base, raw, difference, self._why_here(stage, base, raw, inner))

    def _innermost_first(self, stage: str, base: CallNode, raw: CallNode) -> FirstDifference | None:
        inner = self._inside(stage, base, raw, self._innermost_first)
        if isinstance(inner, FirstDifference):
            return inner
        difference, _ = self._compare(stage, base, raw)
        if difference is None:
            return None
        return FirstDifference(base, raw, difference, self._why_here(stage, base, raw, inner))

    def _inside(self, stage: str, base: CallNode, raw: CallNode, search: Any) -> FirstDifference | Pairs:
        """The first difference among the calls inside, or how these were paired if there is none."""
        pairs = pair_calls(base.children, raw.children, self.layer_map, self.partners)
        ordered = list(pairs.of(base.children, raw.children))
        for first, second in ordered if stage == "Forward" else reversed(ordered):
            found: FirstDifference | None = search(stage, first, second)
            if found is not None:
                return found
        return pairs

    def _why_here(self, stage: str, base: CallNode, raw: CallNode, pairs: Pairs) -> str:
        if not base.children or not raw.children:
            return ""
        names = f"{base.entry['name']} vs raw_model {raw.entry['name']}"
        if pairs.problem:
            return (
                f"While checking {stage.lower()}, diff found at base_model {names}\n"
                f"Their sublayers do not correspond one to one: {pairs.problem}"
            )
        if stage == "Forward":
            return (
                f"Sublayers of {base.entry['name']} and {raw.entry['name']} are corresponded, "
                "but diff found at their output!"
            )
        return (
            f"Grad of sublayer {base.entry['name']} and {raw.entry['name']} are corresponded, "
            "but current grad found diff!"
        )

    def _compare(self, stage: str, base: CallNode, raw: CallNode) -> tuple[TensorDifference | None, int]:
        """How the tensors of a pair differ (None: they agree), and how many were compared."""
        key = "fwd_outputs" if stage == "Forward" else "bwd_grads"
        entries = [node.entry[key] for node in (base, raw)]
        if len(entries[0]) != len(entries[1]) and not (base.builtin and raw.builtin and all(entries)):
            text = f"number of tensors for compare is not equal, {len(entries[0])} vs {len(entries[1])}"
            return TensorDifference(text), 0
        # Layers of the frameworks may hand out more than their counterparts (attention weights).
        compared = 0
        for first, second in zip(*entries, strict=False):
            difference = self._compare_tensors(first["path"], second["path"], base)
            if difference is not None:
                return difference, compared
            compared += first["path"] is not None
        self.compared += compared
        return None, compared

    def _compare_tensors(
        self, first: str | None, second: str | None, node: CallNode
    ) -> TensorDifference | None:
        arrays = self.dumps[0].array(first), self.dumps[1].array(second)
        if arrays[0] is None or arrays[1] is None:
            missing = [name for name, a in zip(("base_model", "raw_model"), arrays, strict=True) if a is None]
            text = f"no gradient arrived in the {missing[0]}, but one in the other"
            return None if len(missing) == 2 else TensorDifference(text)
        outcome = compare(*arrays, self.config)
        if outcome.hidden:
            self.hidden.append(f"{node.path or node.entry['name']}: {outcome.hidden}")
        return None if outcome.equal else TensorDifference(outcome.text, rounding_score(arrays[0], arrays[1]))

    def _print(self, found: FirstDifference, stage: str) -> None:
        nodes: Sequence[CallNode] = (found.base, found.raw)
        log("FAILED !!!")
        if found.message:
            log("ADDITIONAL MESSAGE:")
            print(found.message + "\n")
            log("DIFF DETAILS:")
        log(f"    Diff found in {stage} Stage")
        log(f"    Type of layer is: {nodes[0].entry['name']} vs {nodes[1].entry['name']}")
        log(f"    Route: {nodes[0].path}")
        log(f"           {nodes[1].path}\n")
        print(f"AssertionError: {found.difference.text} \n")
        if self.opinion:
            tell(opinion_on_values([(found.base.path, found.difference.score)]))
        log("Check model struct:")
        paths = write_trees(self.dumps, [node.entry for node in nodes], "report")
        print(f"Logs: {paths[0]}\n      {paths[1]}\n")
