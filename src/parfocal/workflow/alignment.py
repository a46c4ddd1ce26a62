"""One alignment, stage by stage: watch, pair, follow, judge.

The reference runs once under watch and its tensors are put aside. The port runs once by itself,
which gives the values to pair calls by and the results to judge end to end, and once led along
the reference's values, which gives every call's own error. Both models are left as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace

from parfocal.attempts import Attempts
from parfocal.attribution.divisions import Division, divisions, left_open, places_of
from parfocal.attribution.gradient_borders import without_absorbed
from parfocal.attribution.ignoring import IgnoredCalls
from parfocal.attribution.leading import Partners, script_for, weighted
from parfocal.attribution.mask_encodings import Places
from parfocal.attribution.measures import Collector, Measure
from parfocal.attribution.observation import Observation
from parfocal.attribution.pairing_repairs import (
    AS_SEEN,
    LayoutOverrides,
    arranged_otherwise,
    laid_out_otherwise,
    paired_otherwise,
)
from parfocal.attribution.refining import Excuses, refine
from parfocal.attribution.side_by_side import SideComparison, anchored_calls
from parfocal.attribution.sides import Driving, ModelResults, ModelSide, left_as_it_was
from parfocal.attribution.whole_model import WholeModelResults
from parfocal.backends.keeping import KeptAttributes, attributes_kept
from parfocal.backends.protocol import Mode
from parfocal.errors import InputError
from parfocal.explain.layers.settings import differences
from parfocal.judge.tolerance import Tolerance
from parfocal.matching.anchors import anchors_of, splits_of
from parfocal.matching.borders import without_borders
from parfocal.matching.pairing import Pairing, pair_calls, with_parts
from parfocal.phrases import phrase
from parfocal.replay.effort import ALIGNING, Effort, Prices
from parfocal.replay.follow import Binding, ReplayFollower
from parfocal.replay.ledger import Ledger
from parfocal.replay.noise_floors import NoiseFloors
from parfocal.replay.observe import FLOATING, Observer
from parfocal.replay.repeat import Layouts, Repeater, ReplayScript, own_script
from parfocal.replay.trace import Node, Trace
from parfocal.replay.user_errors import INPUTS_HINT
from parfocal.replay.witness import Outline, Witness
from parfocal.weights.plan import Plan, rearranged
from parfocal.weights.tables import FAMILIES
from parfocal.workflow.progress import Tell, silent

SUSPECTS = 3  # settings that are told of a port that does not run


@dataclass(frozen=True, slots=True)
class Correspondence:
    """How the two sides correspond, as far as is known."""

    pairing: Pairing
    lying: LayoutOverrides = AS_SEEN
    divided: Sequence[Division] = ()


@dataclass(frozen=True, slots=True)
class LedRun:
    """A run of the port along the reference's values."""

    script: Mapping[int, Binding]
    results: ModelResults
    precise: NoiseFloors
    measures: list[Measure]


class Alignment:
    """Runs the stages on a pair whose weights correspond as ``plan`` says."""

    def __init__(
        self,
        reference: ModelSide,
        port: ModelSide,
        plan: Plan,
        layers: Mapping[str, str],
        ignore: Sequence[str] = (),
        *,
        backward: bool,
        mode: Mode,
        tolerance: Tolerance | None,
        budget: int | None,
    ) -> None:
        self.reference = reference
        self.port = port
        self.plan = plan
        self.layers = layers
        self.ignore = ignore
        self.tell: Tell = silent
        self.attempts = Attempts()
        self.backward = backward
        self.mode = mode
        self.tolerance = tolerance
        self.budget = budget
        self.driving = Driving(backward=backward)
        self.effort = Effort(ALIGNING)  # of everything that is run
        self._prices: dict[str, float] = {}  # of one run, by side
        self._known: dict[str, KeptAttributes] = {}  # what was noted of its modules at first, by side

    @contextmanager
    def observed(self) -> Iterator[Observation]:
        """Runs all stages. On leaving, both models are as they were, and no call can be repeated any more."""
        with (
            self._attributes_kept(),
            left_as_it_was(self.reference, self.mode),
            Ledger(self.budget) as ledger,
        ):
            if self.tolerance is not None:
                yield self._side_by_side(ledger)
                return
            self.tell(phrase("the reference runs under watch"))
            self._observe(self.reference, self._observer(self.reference, ledger))
            with left_as_it_was(self.port, self.mode) as start_over:
                self.tell(phrase("the port runs by itself"))
                self._observe(self.port, self._observer(self.port, None))
                start_over()
                self.tell(phrase("pairing calls; the port runs along the reference's values"))
                view, led = self._led_as_it_should_be(Correspondence(self._pair()), ledger, start_over)
                ends = WholeModelResults(self.reference, self.port, self.plan, self.driving, self.tolerance)
                ignored = self.ignored()
                overlooked = ignored.overlooked(led.measures)
                parameters = ignored.judged_parameters(
                    ends.parameters(led.results.gradients, led.precise, led.measures)
                )
                measures = ignored.judged(led.measures)
                whole = [] if overlooked else ends.whole(measures, parameters)
                yield Observation(
                    ignored.judged_pairs(view.pairing),
                    measures,
                    parameters,
                    whole,
                    self._unfed(led, view),
                    led.results.buffers,
                    led.precise,
                    gradients=led.results.gradients,
                    overlooked=overlooked,
                    hidden=led.results.hidden,
                    divided=view.divided,
                )

    def _led_as_it_should_be(
        self, view: Correspondence, ledger: Ledger, start_over: Callable[[], None]
    ) -> tuple[Correspondence, LedRun]:
        """Lead the port as first paired, and again whenever a closer look corrects the pairing."""
        led = self._led(view, ledger)
        start_over()
        for look in (_paired_or_lying_otherwise, _divided_otherwise, _taken_in_another_order):
            spent = self.effort.spent
            better = view
            with self.attempts.attempt(phrase("a second look"), ""):
                better = look(view, led)
            if self.effort.spent != spent:  # something ran
                start_over()
            if better is not view:
                view = better
                led = self._led(view, ledger)
                start_over()
        return view, led

    def _unfed(self, led: LedRun, view: Correspondence) -> set[int]:
        """Calls of the port that could not be given all of the reference's inputs."""
        right = places_of(each for each in view.divided if each.is_right)
        return {
            order
            for order in led.script
            if not _is_fed(self.port.trace.nodes[order], led.precise.port.script.layouts, right)
        }

    @contextmanager
    def _attributes_kept(self) -> Iterator[None]:
        ours, theirs = self.reference, self.port
        with (
            attributes_kept(ours.backend, ours.model) as mine,
            attributes_kept(theirs.backend, theirs.model) as yours,
        ):
            self._known = {ours.side: mine, theirs.side: yours}
            yield

    def _led(self, view: Correspondence, ledger: Ledger) -> LedRun:
        """Lead the port along the reference's values as paired, and measure its calls' own errors."""
        pairing, lying = view.pairing, view.lying
        traces = self.reference.trace, self.port.trace
        script, partners = script_for(pairing, *traces, lying.apart)
        try:
            collector, followed, layouts = self._follow(script, partners, ledger, lying)
        except InputError:
            # by itself the port's code runs: it does not stand values of another shape than its own
            self._start_over(self.port)
            script, partners = script_for(pairing, *traces, lying.apart, other_shapes=False)
            collector, followed, layouts = self._follow(script, partners, ledger, lying)
        precise = self._precise(ReplayScript(script, layouts), ledger, pairing)
        self.tell(phrase("measuring noise"))
        excuses = Excuses(precise, (self.reference, self.port), self.plan.entries)
        measures = refine(collector.measures, precise, excuses)
        return LedRun(script, followed, precise, measures)

    def _start_over(self, model_side: ModelSide) -> None:
        """Restore buffers and gradients after a run that failed."""
        for path, tensor in model_side.backend.buffers(model_side.model):
            if path in model_side.buffers_before:
                model_side.backend.write(tensor, model_side.buffers_before[path])
        model_side.backend.clear_gradients(model_side.model)

    def _side_by_side(self, ledger: Ledger) -> Observation:
        """With a fixed tolerance: both natural runs, compared while the port runs; no floors."""
        ours, theirs = self.reference, self.port
        assert self.tolerance is not None
        self._observe(ours, Outline(ours.backend, ours.model, ledger, gradients=self.backward))
        copies = [(entry.source, entry.target) for entry in self.plan.entries]
        paths = {anchor.port[-1]: anchor.reference[-1] for anchor in anchors_of(copies)}
        paths.update({port: reference for reference, port in self.layers.items()})
        comparison = SideComparison(self.tolerance)
        witness = Witness(
            theirs.backend,
            theirs.model,
            ledger,
            ours.trace,
            anchored_calls(paths, ours.trace),
            comparison.judge,
            gradients=self.backward,
        )
        with left_as_it_was(theirs, self.mode):
            self._observe(theirs, witness)
        pairing = without_borders(self._pair(), ours.trace, theirs.trace)
        measures = comparison.measures(witness, pairing, ours.trace, theirs.trace, weighted=ours.loss is None)
        ends = WholeModelResults(ours, theirs, self.plan, self.driving, self.tolerance).whole([], [])
        parameters = [end for end in ends if end.phase == "gradient"]
        agree = all(end.measure.score <= 1.0 for end in parameters)
        measures = without_absorbed(measures, pairing, ours.trace, theirs.trace, gradients_agree=agree)
        ignored = self.ignored()
        return Observation(
            ignored.judged_pairs(pairing),
            ignored.judged(measures),
            ignored.judged_parameters(parameters),
            ends,
            set(),
            theirs.natural.buffers,
            self._precise(ReplayScript({}), ledger, Pairing((), (), ())),
        )

    def _observer(self, model_side: ModelSide, ledger: Ledger | None) -> Observer:
        known = self._known.get(model_side.side)
        return Observer(model_side.backend, model_side.model, ledger, gradients=self.backward, known=known)

    def _observe(self, model_side: ModelSide, observer: Observer) -> None:
        """One natural run: the trace, and what the model gives in full."""
        model_side.buffers_before = model_side.buffers()
        results = ModelResults()
        hint = INPUTS_HINT if model_side is self.reference else self._hint
        try:
            with model_side.telling(phrase("the forward pass"), hint), self._heard(model_side, observer):
                model_side.trace = observer.run(
                    *model_side.inputs(), self.driving.driver(model_side, results)
                )
            self._charge(model_side)
            results.gradients = observer.parameter_gradients
            results.buffers = model_side.buffers()
        finally:
            observer.kept.put_back()
        model_side.natural = results

    def _charge(self, model_side: ModelSide) -> None:
        """Charge one run of the whole model; every run costs as much as the first."""
        if model_side.side not in self._prices:
            self._prices[model_side.side] = Prices(model_side.trace).of(0, backward=self.backward)
        self.effort.charge(self._prices[model_side.side])

    def _heard(self, model_side: ModelSide, observer: Observer) -> AbstractContextManager[None]:
        """Note every dropout function, unless the model is in eval mode."""
        return nullcontext() if self.mode == "eval" else model_side.backend.watch_dropout(observer.dropped)

    def _hint(self) -> str:
        """Why the port may fail where the reference runs: layers with different settings."""
        ours, theirs = (side.backend.modules(side.model) for side in (self.reference, self.port))
        owners = {path: path for path in ours if path in theirs}
        for entry in self.plan.entries:
            owners[entry.source.rpartition(".")[0]] = entry.target.rpartition(".")[0]
        told = [
            f"{other or 'the model'}: {difference}"
            for path, other in owners.items()
            if path in ours and other in theirs
            for difference in differences(
                (self.reference.backend, ours[path]), (self.port.backend, theirs[other])
            )
        ]
        return "; ".join(told[:SUSPECTS]) or INPUTS_HINT

    def _pair(self) -> Pairing:
        copies = [(entry.source, entry.target) for entry in self.plan.entries]
        traces = self.reference.trace, self.port.trace
        pairing = pair_calls(*traces, anchors_of(copies), self.layers, splits_of(copies))
        # what a layer of rows gives lies as its rows do; others sort out inside what is theirs
        rows = {node.path for node in self.port.trace.nodes if FAMILIES.get(node.kind) == "affine"}
        return with_parts(pairing, self.port.trace, rearranged(self.plan.entries) & rows)

    def ignored(self) -> IgnoredCalls:
        return IgnoredCalls(self.ignore, self.reference.trace, self.port.trace)

    def _precise(self, script: ReplayScript, ledger: Ledger, pairing: Pairing) -> NoiseFloors:
        ours, theirs = self.reference, self.port
        takes = _given(pairing, ours.trace, script.ties)
        gives = {pair.reference for pair in pairing.pairs if pair.whole}
        gives.update(pair.gives for pair in pairing.pairs if pair.gives is not None)
        return NoiseFloors(
            Repeater(ours.backend, ours.model, ours.trace, own_script(ours.trace, takes, gives), self.effort),
            Repeater(theirs.backend, theirs.model, theirs.trace, script, self.effort),
            ours.natural.gradients,
            ledger,
        )

    def _follow(
        self, script: Mapping[int, Binding], partners: Partners, ledger: Ledger, lying: LayoutOverrides
    ) -> tuple[Collector, ModelResults, Layouts]:
        """The port again, led along the reference's values."""
        port, results = self.port, ModelResults()
        kept = KeptAttributes(port.backend, port.model, self._known.get(port.side))
        collector = Collector(partners, self.tolerance)
        led = script if self.reference.loss is not None else weighted(script, port.trace)
        follower = ReplayFollower(
            port.backend,
            led,
            ledger.supply,
            collector,
            gradients=self.backward,
            kept=kept,
            unmoved=lying.unmoved,
            words=lying.words,
            whole=True,
        )
        try:
            with port.telling(phrase("the forward pass on the reference's values")):
                with follower.following(port.model, *port.inputs()) as output:
                    self.driving.driver(port, results)(output)
                del output  # and its graph
            results.buffers = port.buffers()
            self._charge(port)
        finally:
            kept.put_back()
        results.gradients = port.gradients() if self.backward else {}
        results.hidden = tuple(dict.fromkeys(order for order, _, _ in follower.hidden))
        return collector, results, follower.layouts


def _given(pairing: Pairing, trace: Trace, bindings: Mapping[int, Binding]) -> dict[int, set[str]]:
    """For every paired call of the reference: which of its inputs its partners are given.

    All inputs where the partners are given none, because these are only parts of a call.
    """
    given: dict[int, set[str]] = {}
    for pair in pairing.pairs:
        slots = given.setdefault(pair.reference, set())
        binding = bindings.get(pair.port)
        led = {id(value.data) for value in binding.inputs.values()} if binding is not None else set()
        inputs = trace.nodes[pair.reference].inputs
        slots.update(slot for slot, value in inputs.items() if not led or id(value.data) in led)
    return given


def _paired_or_lying_otherwise(view: Correspondence, led: LedRun) -> Correspondence:
    pairing = paired_otherwise(view.pairing, led.measures, led.precise)
    lying = laid_out_otherwise(led.measures, led.precise)
    same = pairing is view.pairing and lying == view.lying
    return view if same else Correspondence(pairing, lying)


def _divided_otherwise(view: Correspondence, led: LedRun) -> Correspondence:
    divided = divisions(view.pairing, led.measures, led.precise)
    if not divided:
        return view
    return Correspondence(left_open(view.pairing, divided), view.lying.without(places_of(divided)), divided)


def _taken_in_another_order(view: Correspondence, led: LedRun) -> Correspondence:
    pairing = arranged_otherwise(view.pairing, led.measures, led.precise)
    return view if pairing is view.pairing else replace(view, pairing=pairing)


def _is_fed(node: Node, layouts: Layouts, right: Places) -> bool:
    """Whether all floating inputs were the reference's, as far as the call's place in the run allows.

    ``right``: places where the port's own value is known to be right.
    """
    return all(
        (node.order, "input", slot) in layouts or (node.order, "input", slot) in right
        for slot, value in node.inputs.items()
        if value.data.dtype in FLOATING
    )
