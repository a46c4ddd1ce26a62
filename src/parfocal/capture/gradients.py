"""Gradients at the tensors of calls, recorded as the backward pass brings them.

One hook for each tensor in each of its versions: a tensor that leaves one call and enters
the next has one gradient, kept once and recorded for both. A hook stays with the value a
tensor had when it was set, so a change in place afterwards does not disturb it.

The hooks are owned by the framework's graph and die with it; nothing here keeps a tensor
alive. A gradient that never came is recorded as absent when the step ends; one that could not be
observed (see ``Sight``) is recorded as hidden.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parfocal.backends.protocol import Backend
from parfocal.capture.overwrites import Overwrites, Sight


@dataclass(frozen=True, slots=True)
class GradientTarget:
    """One place where a gradient is awaited."""

    call: int
    side: str  # "input" or "output"
    slot: str
    step: int


# The targets, their gradient (None says that none came), and whether it could not be observed.
Arrived = Callable[[Sequence[GradientTarget], Any, bool], None]
Exchange = Callable[[Any], Any]  # a gradient in, the one to use instead out (None: keep it)


@dataclass(slots=True)
class _Share:
    """What one use of a tensor contributes to its gradient."""

    target: GradientTarget
    gradient: Any = None

    def take(self, gradient: Any) -> None:
        self.gradient = gradient


@dataclass(slots=True)
class _Watched:
    """The hook at one version of one tensor."""

    tensor: weakref.ref[Any]
    version: int | None
    leaf: bool
    sight: Sight
    targets: list[GradientTarget] = field(default_factory=list)
    shares: list[_Share] = field(default_factory=list)
    exchange: Exchange | None = None
    arrived: int = 0  # how many gradients so far


class GradientWatch:
    """Awaits gradients on behalf of one recording."""

    def __init__(self, backend: Backend, arrived: Arrived) -> None:
        self._backend = backend
        self._arrived = arrived
        self._known: dict[int, _Watched] = {}
        self._awaited: dict[GradientTarget, Sight] = {}
        self._overwrites = Overwrites(backend)
        self._removers: list[Callable[[], None]] = []
        self._closed = False

    def await_gradient(self, tensor: Any, target: GradientTarget, exchange: Exchange | None = None) -> bool:
        """Record the gradient of ``tensor`` as it is now; False for one outside autograd, which has none."""
        if not (self._backend.requires_grad(tensor) and self._backend.grad_enabled()):
            return False
        watched = self._watched(tensor)
        if watched is None:
            return False
        if watched.leaf and watched.arrived:
            # The next gradient of a leaf belongs to the calls made since the last one came.
            watched.targets.clear()
            watched.arrived = 0
        watched.targets.append(target)
        watched.exchange = exchange or watched.exchange
        self._awaited[target] = watched.sight
        return True

    def await_own(self, tensor: Any, fed: Any, target: GradientTarget) -> None:
        """Record what one use alone sends back: ``fed`` was made from ``tensor`` for it.

        Other runs have the whole gradient of a tensor, so this one is recorded only where it is
        the whole: a tensor that is used elsewhere too gets no record.
        """
        if not self._backend.requires_grad(fed):
            return
        watched = self._watched(tensor)
        if watched is not None:
            share = _Share(target)
            watched.shares.append(share)
            self._backend.watch_gradient(fed, share.take)
            self._awaited[target] = watched.sight

    def report_absent(self) -> None:
        """Record what never came, at the end of a step."""
        for target, sight in self._awaited.items():
            self._arrived((target,), None, sight.lost)
        self._awaited.clear()

    def end_step(self) -> None:
        """Await nothing any more, and take the hooks off tensors that outlive their graph."""
        self._awaited.clear()
        for remove in self._removers:
            remove()
        self._removers.clear()
        self._overwrites.clear()
        self._known = {key: watched for key, watched in self._known.items() if not watched.leaf}

    def close(self) -> None:
        """From now on every hook that is still on a graph does nothing."""
        self.end_step()
        self._closed = True
        self._known.clear()

    def _watched(self, tensor: Any) -> _Watched | None:
        identity = id(tensor)
        version = self._backend.version(tensor) if self._backend.counts_changes(tensor) else None
        known = self._known.get(identity)
        if known is not None and known.tensor() is tensor and known.version == version:
            return known
        leaf = self._backend.is_leaf(tensor)
        reference = weakref.ref(tensor, lambda _: self._known.pop(identity, None))
        sight = self._overwrites.sight(self._backend.changes_behind_hooks(tensor))
        watched = _Watched(reference, version, leaf, sight)
        remove = self._backend.watch_gradient(tensor, lambda gradient: self._on_gradient(watched, gradient))
        if remove is None:
            return None
        if leaf:
            self._removers.append(remove)
        self._known[identity] = watched
        return watched

    def _on_gradient(self, watched: _Watched, gradient: Any) -> Any:
        if self._closed or watched.sight.lost:  # what comes is a part at most
            return None
        watched.arrived += 1
        self._settle_shares(watched, gradient)
        replacement = watched.exchange(gradient) if watched.exchange is not None else None
        used = gradient if replacement is None else replacement
        for target in watched.targets:
            self._awaited.pop(target, None)
        self._arrived(watched.targets, used, False)
        return replacement

    def _settle_shares(self, watched: _Watched, whole: Any) -> None:
        sent = [share for share in watched.shares if share.gradient is not None]
        for share in sent:
            self._awaited.pop(share.target, None)
            if len(sent) == 1 and self._equal(share.gradient, whole):
                self._arrived((share.target,), whole, False)
            share.gradient = None

    def _equal(self, one: Any, other: Any) -> bool:
        to_array = self._backend.to_array
        return np.array_equal(to_array(one, copy=False), to_array(other, copy=False), equal_nan=True)
