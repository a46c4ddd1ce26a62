from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from tests.conformance.models import kit_for


class Log:
    """A watcher that writes down what it is told."""

    def __init__(self):
        self.calls = []
        self.ended = []

    def enter(self, call):
        self.calls.append(call)

    def exit(self, call, output):
        assert call in self.calls
        self.ended.append(call.order)

    def tree(self):
        return [(call.path, call.parent, call.depth) for call in self.calls]


def watch(backend, model, log):
    return backend.watch(model, log.enter, log.exit)


def hooks_of(model, backend):
    kit = kit_for(backend.name)
    return [[dict(each) for each in kit.hooks(module)] for module in backend.modules(model).values()]


def test_calls_nest_and_repeat_in_order(kit, backend):
    shared = kit.linear(2, 2)
    inner = kit.module(lambda self, x: self.a(self.a(x)), a=shared)
    model = kit.module(
        lambda self, x: self.last(self.b(x) + self.inner(x)), inner=inner, b=shared, last=kit.linear(2, 2)
    )
    log = Log()
    with watch(backend, model, log):
        model(kit.tensor([[1.0, 2.0]]))
    assert log.tree() == [
        ("", None, 0),
        ("inner.a", 0, 1),  # called as self.b: a shared module has its first path
        ("inner", 0, 1),
        ("inner.a", 2, 2),
        ("inner.a", 2, 2),
        ("last", 0, 1),
    ]
    assert [call.order for call in log.calls] == [0, 1, 2, 3, 4, 5]
    assert log.ended == [1, 3, 4, 2, 5, 0]


def test_orders_start_anew_with_each_watch_and_run_on_within_one(kit, backend):
    model = kit.sequential(kit.linear(2, 2))
    for _ in range(2):
        log = Log()
        with watch(backend, model, log):
            model(kit.tensor([[1.0, 2.0]]))
            model(kit.tensor([[1.0, 2.0]]))
        assert log.tree() == [("", None, 0), ("0", 0, 1), ("", None, 0), ("0", 2, 1)]


def test_keyword_arguments_are_seen_and_replaced(kit, backend):
    inner = kit.module(lambda self, x, *, scale: x * scale)
    model = kit.module(lambda self, x: self.inner(x, scale=2.0), inner=inner)
    seen = []

    def enter(call):
        if call.path == "inner":
            seen.append((len(call.args), dict(call.kwargs)))
            return (call.args[0] + 1.0,), {"scale": 10.0}
        return None

    def leave(call, output):
        if call.path == "inner":
            assert call.kwargs == {"scale": 10.0}

    with backend.watch(model, enter, leave):
        output = model(kit.tensor([1.0, 2.0]))
    assert seen == [(1, {"scale": 2.0})]
    assert kit.array(output).tolist() == [20.0, 30.0]


def test_outputs_are_replaced(kit, backend):
    model = kit.module(lambda self, x: self.inner(x) * 2.0, inner=kit.module(lambda self, x: x + 1.0))
    with backend.watch(model, on_exit=lambda call, output: output * 10.0 if call.path == "inner" else None):
        output = model(kit.tensor([1.0]))
    assert kit.array(output).tolist() == [40.0]
    assert kit.array(model(kit.tensor([1.0]))).tolist() == [4.0]


def test_an_exception_that_the_model_catches_leaves_correct_parents(kit, backend):
    def fails(self, x):
        raise ValueError("inside")

    def forward(self, x):
        try:
            self.middle(x)
        except ValueError:
            return self.good(x)
        raise AssertionError("nothing was raised")

    middle = kit.module(lambda self, x: self.bad(x), bad=kit.module(fails))
    model = kit.module(forward, middle=middle, good=kit.linear(2, 2))
    log = Log()
    with watch(backend, model, log):
        model(kit.tensor([[1.0, 2.0]]))
        model(kit.tensor([[1.0, 2.0]]))
    first = [("", None, 0), ("middle", 0, 1), ("middle.bad", 1, 2), ("good", 0, 1)]
    second = [("", None, 0), ("middle", 4, 1), ("middle.bad", 5, 2), ("good", 4, 1)]
    assert log.tree() == first + second
    assert log.ended == [3, 0, 7, 4]


def test_calls_made_while_an_exception_is_handled_end_as_others_do(kit, backend):
    def fail(self, x):
        raise ValueError("inside")

    def forward(self, x):
        try:
            self.bad(x)
        except ValueError:
            return self.last(self.good(x))

    model = kit.module(forward, bad=kit.module(fail), good=kit.linear(2, 2), last=kit.linear(2, 2))
    log = Log()
    with watch(backend, model, log):
        try:
            raise KeyError("outside")
        except KeyError:
            model(kit.tensor([[1.0, 2.0]]))
    assert log.tree() == [("", None, 0), ("bad", 0, 1), ("good", 0, 1), ("last", 0, 1)]
    assert log.ended == [2, 3, 0]  # what raises gives nothing


def test_a_recursive_module_that_raises_unwinds_by_one(kit, backend):
    def forward(self, x, depth=0):
        if depth == 2:
            raise ValueError
        try:
            return self(x, depth + 1)
        except ValueError:
            return self.leaf(x)

    model = kit.module(forward, leaf=kit.linear(2, 2))
    log = Log()
    with watch(backend, model, log):
        model(kit.tensor([[1.0, 2.0]]))
    assert log.tree() == [("", None, 0), ("", 0, 1), ("", 1, 2), ("leaf", 1, 2)]


def test_an_interrupt_that_the_model_catches_is_unwound_at_the_next_end(kit, backend):
    def interrupted(self, x):
        raise KeyboardInterrupt

    def catches(self, x):
        try:
            self.bad(x)
        except KeyboardInterrupt:
            return x
        raise AssertionError("nothing was raised")

    inner = kit.module(catches, bad=kit.module(interrupted))
    model = kit.module(lambda self, x: self.after(self.inner(x)), inner=inner, after=kit.linear(2, 2))
    log = Log()
    with watch(backend, model, log):
        model(kit.tensor([[1.0, 2.0]]))
    assert log.tree()[-1] == ("after", 0, 1)


@pytest.mark.parametrize("where", ["model", "on_enter", "on_exit"])
def test_everything_is_restored_after_an_exception(kit, backend, where):
    def forward(self, x):
        if where == "model":
            raise ValueError("model")
        return self.a(x)

    def fail(*_):
        raise ValueError(where)

    model = kit.module(forward, a=kit.linear(2, 2))
    before = hooks_of(model, backend)
    callbacks = {where: fail} if where != "model" else {}
    with backend.watch(model, **callbacks):
        assert hooks_of(model, backend) != before
    with pytest.raises(ValueError, match=where), backend.watch(model, **callbacks):
        model(kit.tensor([[1.0, 2.0]]))
    assert hooks_of(model, backend) == before


def test_two_watchers_see_the_same_calls(kit, backend):
    model = kit.sequential(kit.linear(2, 2), kit.linear(2, 2))
    first, second = Log(), Log()
    with watch(backend, model, first):
        with watch(backend, model, second):
            model(kit.tensor([[1.0, 2.0]]))
        model(kit.tensor([[1.0, 2.0]]))
    assert second.tree() == [("", None, 0), ("0", 0, 1), ("1", 0, 1)]
    assert first.tree()[:3] == second.tree()
    assert len(first.calls) == 6


def test_a_part_of_a_model_can_be_watched(kit, backend):
    inner = kit.sequential(kit.linear(2, 2))
    model = kit.sequential(inner, kit.linear(2, 2))
    log = Log()
    with watch(backend, inner, log):
        model(kit.tensor([[1.0, 2.0]]))
    assert log.tree() == [("", None, 0), ("0", 0, 1)]


def test_a_watch_started_in_the_middle_of_a_call_sees_what_begins_later(kit, backend):
    log = Log()

    def forward(self, x):
        with watch(backend, self, log):
            return self.a(x)

    model = kit.module(forward, a=kit.linear(2, 2))
    model(kit.tensor([[1.0, 2.0]]))
    assert log.tree() == [("a", None, 0)]


def test_threads_keep_to_themselves(kit, backend):
    def forward(self, x):
        y = self.a(x)
        time.sleep(0.02)
        return self.b(y)

    model = kit.module(forward, a=kit.linear(2, 2), b=kit.linear(2, 2))
    log = Log()
    with watch(backend, model, log):
        threads = [threading.Thread(target=model, args=(kit.tensor([[1.0, 2.0]]),)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    roots = {call.order for call in log.calls if call.path == ""}
    assert len(roots) == 2
    for root in roots:
        assert [call.path for call in log.calls if call.parent == root] == ["a", "b"]


def test_users_hooks_count_as_part_of_the_call(kit, backend):
    model = kit.module(lambda self, x: x + 1.0)
    model.register_forward_pre_hook(lambda module, args: (args[0] * 2.0,))
    kit.after_calls(model, lambda module, args, output: output * 10.0)
    seen = {}
    with backend.watch(
        model,
        lambda call: seen.update(entered=kit.array(call.args[0]).item()),
        lambda call, output: seen.update(left=kit.array(output).item()),
    ):
        model(kit.tensor([3.0]))
    assert seen == {"entered": 3.0, "left": 70.0}


def test_transformers_call_their_parts_under_watch(kit, backend):
    if kit.name == "torch":
        model = kit.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    else:
        model = kit.nn.TransformerEncoderLayer(4, 2, 8)
    log = Log()
    with backend.mode(model, "eval"), backend.no_grad(), watch(backend, model, log):
        model(kit.tensor(np.ones((1, 3, 4))))
    assert {"", "self_attn", "linear1", "norm1", "linear2", "norm2"} <= {call.path for call in log.calls}


def test_torch_takes_its_fast_path_again_afterwards():
    import torch

    from parfocal.backends import registry
    from parfocal.backends.torch.watch import fast_path

    model = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
    called = []
    model.linear1.register_forward_hook(lambda *_: called.append(1))
    with registry.get("torch").watch(model):
        pass
    assert fast_path.get_fastpath_enabled()
    fast_path.set_fastpath_enabled(False)
    try:
        with registry.get("torch").watch(model):
            pass
        assert not fast_path.get_fastpath_enabled()
    finally:
        fast_path.set_fastpath_enabled(True)


def test_hooks_cost_next_to_nothing(kit, backend):
    model = kit.module(lambda self, x: [self.a(x) for _ in range(500)], a=kit.module(lambda self, x: x))
    tensor = kit.tensor([1.0])

    def fastest():
        times = []
        for _ in range(7):
            start = time.thread_time()
            model(tensor)
            times.append(time.thread_time() - start)
        return min(times)

    plain = fastest()
    with backend.watch(model, lambda call: None, lambda call, output: None):
        watched = fastest()
    assert (watched - plain) / 500 < 20e-6
