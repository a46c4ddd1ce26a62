"""Trainings on one or several ranks, recorded; run under a launcher: ``train.py FRAMEWORK JOBS.json``.

A job is a folder to record to and what is special about the training. All jobs of a file are done in one
launch, one after the other. Data and first weights are the same everywhere, made by NumPy.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from typing import Any

import numpy as np

warnings.simplefilter("ignore")

SAMPLES, WIDTH, HIDDEN, CLASSES, SHARE = 48, 6, 8, 3, 8
RATE, MOMENTUM = 0.05, 0.9
STATE = ("parameter", "buffer")

DEFAULTS: dict[str, Any] = {
    "norm": None,  # "batch": BatchNorm, "synced": over all ranks
    "reduction": "wrapper",  # "wrapper": DataParallel; "mean", "sum", "none": by hand, afterwards
    "factor": 1.0,  # of the gradients, by hand
    "rate": RATE,
    "sampler": "strided",  # how a rank's share of a batch is taken
    "share": SHARE,  # samples of a rank
    "samples": SAMPLES,
    "nudged_rank": None,  # whose first weights differ
    "loss_factor": 1.0,
    "loss": "mean",
    "tensors": "full",
    "clip": None,  # the largest norm of the gradients
    "divided": False,  # each rank has a part of the hidden layer
}


def data() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(7)
    inputs = generator.standard_normal((SAMPLES, WIDTH)).astype("float32")
    return inputs, generator.integers(0, CLASSES, SAMPLES)


def first_weights() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(8)
    shapes = {
        "0.weight": (HIDDEN, WIDTH),
        "0.bias": (HIDDEN,),
        "3.weight": (CLASSES, HIDDEN),
        "3.bias": (CLASSES,),
    }
    return {name: 0.5 * generator.standard_normal(shape).astype("float32") for name, shape in shapes.items()}


def part_of(name: str, values: np.ndarray, rank: int, ranks: int) -> np.ndarray:
    """A rank's part of a weight, where the hidden layer is divided."""
    if name == "3.bias":
        return values
    return np.ascontiguousarray(np.split(values, ranks, axis=1 if name == "3.weight" else 0)[rank])


def shares(job: dict[str, Any], rank: int, ranks: int) -> list[list[int]]:
    """The samples of every step of this rank."""
    size = job["share"] if ranks > 1 else job["share"] * job.get("ranks", 2)
    samples = list(range(job["samples"]))
    if ranks == 1 or job["sampler"] == "all":
        return [samples[start : start + size] for start in range(0, len(samples), size)]
    if job["sampler"] == "strided":
        if len(samples) % ranks:
            samples += samples[: ranks - len(samples) % ranks]
        own = samples[rank::ranks]
        return [own[start : start + size] for start in range(0, len(own), size)]
    if job["sampler"] == "unpadded":
        own = samples[rank::ranks]
        return [own[start : start + size] for start in range(0, len(own), size)]
    if job["sampler"] == "swapped":
        own = samples[(rank + 1) % ranks :: ranks]
        return [own[start : start + size] for start in range(0, len(own), size)]
    assert job["sampler"] == "blocks"  # a rank takes a block of every global batch
    starts = range(rank * size, len(samples), size * ranks)
    return [samples[start : start + size] for start in starts]


def train_torch(job: dict[str, Any], rank: int, ranks: int) -> None:
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    from parfocal.capture.recording import record

    class SyncedBatchNorm1d(torch.nn.BatchNorm1d):
        """SyncBatchNorm has no kernel for CPU."""

        def forward(self, given: Any) -> Any:
            from torch.distributed.nn.functional import all_reduce

            count = given.shape[0] * ranks
            mean = all_reduce(given.sum(0)) / count
            variance = all_reduce((given - mean).square().sum(0)) / count
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(variance * count / (count - 1), self.momentum)
            return (given - mean) / (variance + self.eps).sqrt() * self.weight + self.bias

    class Reduced(torch.autograd.Function):
        """The sum over ranks, of which every rank sends its own gradient back."""

        @staticmethod
        def forward(context: Any, given: Any) -> Any:
            whole = given.clone()
            dist.all_reduce(whole)
            return whole

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            return gradient

    class Row(torch.nn.Linear):
        def forward(self, given: Any) -> Any:
            return Reduced.apply(given @ self.weight.T) + self.bias

    synced = job["norm"] == "synced" and ranks > 1
    made = SyncedBatchNorm1d if synced else torch.nn.BatchNorm1d
    norm = torch.nn.Identity() if job["norm"] is None else made(HIDDEN)
    hidden, last = (HIDDEN // ranks, Row) if job["divided"] else (HIDDEN, torch.nn.Linear)
    net = torch.nn.Sequential(torch.nn.Linear(WIDTH, hidden), norm, torch.nn.Tanh(), last(hidden, CLASSES))
    weights = first_weights()
    if job["divided"]:
        weights = {name: part_of(name, values, rank, ranks) for name, values in weights.items()}
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if name in weights:
                parameter.copy_(torch.from_numpy(weights[name]))
                if job["nudged_rank"] == rank and name == "0.weight":
                    parameter.mul_(1.5)
    model: Any = net
    by_hand = ranks > 1 and job["reduction"] != "wrapper"
    if ranks > 1 and not by_hand and not job["divided"]:
        model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), job["rate"], momentum=MOMENTUM)
    inputs, labels = data()
    with record(
        model, job["path"], optimizer=optimizer, state=("parameter", "buffer"), tensors=job["tensors"]
    ):
        for rows in shares(job, rank, ranks):
            output = model(torch.from_numpy(inputs[rows]))
            loss = torch.nn.functional.cross_entropy(
                output, torch.from_numpy(labels[rows]), reduction=job["loss"]
            )
            (loss * job["loss_factor"]).backward()
            for parameter in net.parameters() if by_hand and job["reduction"] != "none" else ():
                dist.all_reduce(parameter.grad)
                parameter.grad *= job["factor"] / (ranks if job["reduction"] == "mean" else 1)
            if job["clip"] is not None:
                torch.nn.utils.clip_grad_norm_(net.parameters(), job["clip"])
            optimizer.step()
            optimizer.zero_grad()


def train_paddle(job: dict[str, Any], rank: int, ranks: int) -> None:
    import paddle
    import paddle.distributed as dist

    from parfocal.capture.recording import record

    class AllReduce(paddle.autograd.PyLayer):
        @staticmethod
        def forward(context: Any, given: Any) -> Any:
            whole = given.clone()
            dist.all_reduce(whole)
            return whole

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            whole = gradient.clone()
            dist.all_reduce(whole)
            return whole

    class SyncedBatchNorm1D(paddle.nn.BatchNorm1D):
        """SyncBatchNorm has no kernel for CPU."""

        def forward(self, given: Any) -> Any:
            count = given.shape[0] * ranks
            mean = AllReduce.apply(given.sum(0)) / count
            variance = AllReduce.apply((given - mean).square().sum(0)) / count
            kept = self._momentum
            self._mean.set_value(kept * self._mean + (1 - kept) * mean.detach())
            self._variance.set_value(kept * self._variance + (1 - kept) * variance.detach())
            return (given - mean) / (variance + self._epsilon).sqrt() * self.weight + self.bias

    class Reduced(paddle.autograd.PyLayer):
        """The sum over ranks, of which every rank sends its own gradient back."""

        @staticmethod
        def forward(context: Any, given: Any) -> Any:
            whole = given.clone()
            dist.all_reduce(whole)
            return whole

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            return gradient.clone()

    class Row(paddle.nn.Linear):
        def forward(self, given: Any) -> Any:
            return Reduced.apply(given @ self.weight) + self.bias

    synced = job["norm"] == "synced" and ranks > 1
    made = SyncedBatchNorm1D if synced else paddle.nn.BatchNorm1D
    norm = paddle.nn.Identity() if job["norm"] is None else made(HIDDEN)
    hidden, last = (HIDDEN // ranks, Row) if job["divided"] else (HIDDEN, paddle.nn.Linear)
    net = paddle.nn.Sequential(paddle.nn.Linear(WIDTH, hidden), norm, paddle.nn.Tanh(), last(hidden, CLASSES))
    weights = first_weights()
    if job["divided"]:
        weights = {name: part_of(name, values, rank, ranks) for name, values in weights.items()}
    for name, parameter in net.named_parameters():
        if name in weights:
            value = weights[name].T if name.endswith("weight") else weights[name]
            factor = 1.5 if job["nudged_rank"] == rank and name == "0.weight" else 1.0
            parameter.set_value(np.ascontiguousarray(factor * value).astype("float32"))
    model: Any = net
    by_hand = ranks > 1 and job["reduction"] != "wrapper"
    if ranks > 1 and not by_hand and not job["divided"]:
        model = paddle.DataParallel(net)
    clip = None if job["clip"] is None else paddle.nn.ClipGradByGlobalNorm(job["clip"])
    optimizer = paddle.optimizer.Momentum(job["rate"], MOMENTUM, parameters=net.parameters(), grad_clip=clip)
    inputs, labels = data()
    with record(
        model, job["path"], optimizer=optimizer, state=("parameter", "buffer"), tensors=job["tensors"]
    ):
        for rows in shares(job, rank, ranks):
            output = model(paddle.to_tensor(inputs[rows]))
            loss = paddle.nn.functional.cross_entropy(
                output, paddle.to_tensor(labels[rows]), reduction=job["loss"]
            )
            (loss * job["loss_factor"]).backward()
            for parameter in net.parameters() if by_hand and job["reduction"] != "none" else ():
                if parameter.grad is not None:
                    dist.all_reduce(parameter.grad)
                    parameter.grad.set_value(
                        parameter.grad * (job["factor"] / (ranks if job["reduction"] == "mean" else 1))
                    )
            optimizer.step()
            optimizer.clear_grad(set_to_zero=False)


def main(framework: str, jobs: str) -> None:
    with open(jobs) as file:
        wanted = [{**DEFAULTS, **job} for job in json.load(file)]
    if framework == "torch":
        import torch
        import torch.distributed as dist

        torch.set_num_threads(1)
        if "RANK" in os.environ:
            dist.init_process_group("gloo")
        train = train_torch
    else:
        import paddle.distributed as dist

        if "PADDLE_TRAINER_ID" in os.environ:
            dist.init_parallel_env()
        train = train_paddle
    launched = {"RANK", "PADDLE_TRAINER_ID"} & set(os.environ)
    rank, ranks = (dist.get_rank(), dist.get_world_size()) if launched else (0, 1)
    for job in wanted:
        train(job, rank, ranks)
    if framework == "torch" and launched:
        dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
