"""Recordings that are interrupted, long, or small: exceptions, kills, memory, sketches."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
import weakref

import numpy as np
import pytest

from parfocal.capture.recording import SMALL_BYTES, record
from parfocal.errors import InputError
from parfocal.judge.sketch import Sketch, relative_distance, sketch
from parfocal.run.reader import load_run
from tests.conformance.recorded import values

KILLS = int(os.environ.get("PARFOCAL_KILLS", "10"))


def faulty(kit, state):
    def forward(self, x):
        x = self.first(x)
        if state["fail"]:
            raise ZeroDivisionError("in the middle")
        return self.second(x)

    return kit.module(forward, first=kit.linear(3, 3), second=kit.linear(3, 1))


def test_an_exception_in_the_model_leaves_a_readable_incomplete_run(kit, tmp_path):
    state = {"fail": True}
    model = faulty(kit, state)
    with pytest.raises(ZeroDivisionError), record(model, tmp_path / "run"):
        model(kit.tensor(values(1, 3)))
    run = load_run(tmp_path / "run")
    assert not run.complete
    assert [call.path for call in run.calls()] == ["first"]
    assert run.verify() == []
    # Everything is as it was: the model runs, and the next recording works.
    state["fail"] = False
    with record(model) as recorder:
        model(kit.tensor(values(1, 3))).sum().backward()
    assert sorted(call.path for call in recorder.run.calls()) == ["", "first", "second"]


def test_an_exception_that_the_user_handles_inside(kit):
    state = {"fail": True}
    model = faulty(kit, state)
    with record(model) as recorder:
        with pytest.raises(ZeroDivisionError):
            model(kit.tensor(values(1, 3)))
        state["fail"] = False
        model(kit.tensor(values(1, 3))).sum().backward()
    run = recorder.run
    assert run.complete
    by_order = {call.order: call for call in run.calls()}
    assert [(by_order[order].path, by_order[order].occurrence) for order in sorted(by_order)] == [
        ("first", 0),
        ("", 1),
        ("first", 1),
        ("second", 0),
    ]
    second = next(call for call in run.calls() if call.path == "second")
    assert by_order[second.parent].path == ""


def hooks(kit, model):
    return [len(each) for module in kit.backend.modules(model).values() for each in kit.hooks(module)]


def test_nothing_stays_installed_after_an_exception(kit):
    model = faulty(kit, {"fail": True})
    before, doors = hooks(kit, model), kit.backward_doors()
    with pytest.raises(ZeroDivisionError), record(model):
        model(kit.tensor(values(1, 3)))
    assert hooks(kit, model) == before
    assert kit.backward_doors() == doors


def test_an_exception_in_a_gradient_hook_of_ours_reaches_the_user(kit, monkeypatch):
    model = kit.linear(3, 1)
    with record(model) as recorder:
        out = model(kit.tensor(values(1, 3))).sum()
        monkeypatch.setattr(
            recorder._session.writer, "append", lambda record: (_ for _ in ()).throw(InputError("disk gone"))
        )
        with pytest.raises(Exception, match="disk gone"):
            out.backward()
        monkeypatch.undo()
    model(kit.tensor(values(1, 3))).sum().backward()


def test_a_long_loop_holds_no_tensors(kit):
    model = kit.sequential(kit.linear(64, 64), kit.nn.ReLU(), kit.linear(64, 64))
    alive: list[weakref.ref] = []
    with record(model) as recorder:
        for _ in range(5):
            x = kit.tensor(values(8, 64), grad=True)
            out = model(x)
            alive.extend(weakref.ref(tensor) for tensor in (x, out))
            out.sum().backward()
            kit.backend.clear_gradients(model)
            recorder.step()
            del x, out
        # Without the garbage collector's help: a cycle would hold a step's tensors for long.
        assert [reference() for reference in alive] == [None] * len(alive)
        session = recorder._session
        assert len(session.keeper._known) <= len(kit.backend.state(model)) * 2


def test_a_loop_without_steps_and_without_backward_holds_no_tensors(kit):
    model = kit.sequential(kit.linear(64, 64), kit.nn.ReLU())
    gc.collect()
    with record(model) as recorder:
        alive = []
        for _ in range(5):
            out = model(kit.tensor(values(8, 64)))
            alive.append(weakref.ref(out))
            del out
        assert [reference() for reference in alive] == [None] * 5
    assert len(recorder.run.calls()) == 15


def test_sketches_say_how_far_apart(kit):
    model = kit.fill(kit.sequential(kit.linear(64, 64), kit.nn.ReLU()))
    x = values(32, 64)

    def run(inputs, tensors):
        with record(model, tensors=tensors) as recorder:
            model(kit.tensor(inputs)).sum().backward()
        return recorder.run

    def outputs(run):
        return {call.path: call.outputs.leaves["0"] for call in run.calls()}

    full, one, other = run(x, "full"), run(x, "sketch"), run(x * 1.01, "sketch")
    for path, value in outputs(one).items():
        assert value.ref is None
        exact = sketch(full.read(outputs(full)[path]))
        kept = Sketch.from_json(value.sketch)
        assert kept == exact
        apart = relative_distance(kept, Sketch.from_json(outputs(other)[path].sketch))
        assert apart == pytest.approx(0.01, rel=0.3)
    assert {found.value.ref for found in one.gradients()} == {None}
    assert all(found.value.sketch for found in one.gradients())
    stored = [state.value.ref.nbytes for state in one.state() if state.value.ref is not None]
    assert all(nbytes <= SMALL_BYTES for nbytes in stored)  # parameters of a few bytes, and nothing else
    assert sum(file.stat().st_size for file in one.path.glob("tensors-*")) < 2 * SMALL_BYTES + 64 * len(
        stored
    )
    with pytest.raises(InputError, match="recorded with tensors='sketch'"):
        one.read(outputs(one)[""])


def test_statistics_only(kit):
    model = kit.linear(3, 2)
    x = values(4, 3)
    with record(model, tensors="stats") as recorder:
        model(kit.tensor(x))
    (call,) = recorder.run.calls()
    leaf = call.inputs.leaves["0"]
    assert (leaf.ref, leaf.sketch) == (None, None)
    assert leaf.stats["mean"] == pytest.approx(x.mean(), rel=1e-6)
    assert leaf.stats["maximum"] == x.max()


def test_infinities_survive_a_sketch(kit):
    model = kit.module(lambda self, x: x)
    with record(model, tensors="sketch") as recorder:
        model(kit.tensor([1.0, np.inf, -np.inf, np.nan]))
    (call,) = recorder.run.calls()
    found = Sketch.from_json(call.outputs.leaves["0"].sketch)
    assert (found.nan, found.positive_infinity, found.negative_infinity) == (1, 1, 1)


# Forks a process for each folder it is told, so that a framework is imported only once.
LOOP = """
import os, sys, warnings
warnings.simplefilter("ignore")
from tests.conformance.models import kit_for
from parfocal.capture.recording import record

kit = kit_for(sys.argv[1])
model = kit.fill(kit.sequential(kit.linear(8, 8), kit.nn.ReLU(), kit.linear(8, 1)))
for line in sys.stdin:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        print("dead", flush=True)
        continue
    x = kit.tensor([[0.5] * 8] * 4)
    print(os.getpid(), flush=True)
    with record(model, line.strip()) as recorder:
        for step in range(1_000_000):
            model(x).sum().backward()
            recorder.step()
            print(step, flush=True)  # this step's records are finished
"""


class Loop:
    """A process that records in others, which can be killed."""

    def __init__(self, kit):
        self.process = subprocess.Popen(
            [sys.executable, "-c", LOOP, kit.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )

    def kill_after(self, folder, moment):
        """Record to a folder and kill the process; returns the last step it said was finished."""
        self.process.stdin.write(f"{folder}\n")
        self.process.stdin.flush()
        child = int(self.process.stdout.readline())
        said = [self.process.stdout.readline()]  # the first step is done
        time.sleep(moment)
        os.kill(child, signal.SIGKILL)
        while not said[-1].endswith("dead\n"):  # after half of a line, if it was killed while it wrote one
            said.append(self.process.stdout.readline())
            assert said[-1], "the process that is to be forked has ended"
        return int(said[-2])

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def loop(kit):
    running = Loop(kit)
    yield running
    running.close()


def test_killed_at_any_moment(loop, tmp_path):
    random = np.random.default_rng(int.from_bytes(os.urandom(4), "little"))
    for number in range(KILLS // 2):  # each framework has its half
        folder = tmp_path / str(number)
        moment = float(random.uniform(0, 0.05))
        last = loop.kill_after(folder, moment)
        run = load_run(folder)
        assert not run.complete
        assert run.verify() == run.problems  # at most a torn last line
        assert [item.step for item in run.steps()][: last + 1] == list(range(last + 1))
        calls: dict[int, list[str]] = {}
        for call in run.calls():
            calls.setdefault(call.step, []).append(call.path)
        assert all(calls[step] == ["0", "1", "2", ""] for step in range(last + 1)), moment
        gradients = [found.step for found in run.gradients()]
        assert {gradients.count(step) for step in range(last + 1)} == {6}
