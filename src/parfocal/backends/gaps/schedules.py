"""Differences of learning rate schedules."""

from __future__ import annotations

from parfocal.backends.gaps.entry import Family, Gap, Status, Symptom, Wording

GAPS: tuple[Gap, ...] = (
    Gap(
        "scheduler-wiring",
        Family.SCHEDULES,
        Status.VERIFIED,
        (Symptom.UPDATE,),
        ("torch.optim.lr_scheduler.LRScheduler",),
        ("paddle.optimizer.lr.LRScheduler", "paddle.optimizer.Optimizer"),
        Wording(
            "The optimizer holds the scheduler",
            "A scheduler is built on an optimizer and sets its rate.",
            "A scheduler is built on its own and passed to the optimizer as learning_rate.",
            "An optimizer that was given a number keeps that rate, whatever the scheduler does.",
            "Pass learning_rate=scheduler to the optimizer.",
        ),
    ),
    Gap(
        "reading-the-rate",
        Family.SCHEDULES,
        Status.VERIFIED,
        (Symptom.METRIC,),
        ("torch.optim.lr_scheduler.LRScheduler.get_last_lr",),
        ("paddle.optimizer.lr.LRScheduler.get_lr", "paddle.optimizer.Optimizer.get_lr"),
        Wording(
            "get_lr of a scheduler is not the current rate",
            "get_last_lr gives the rates that are in use.",
            "optimizer.get_lr() and scheduler() give the rate in use. get_lr of a scheduler computes another"
            " one for recursive schedules, and is not implemented for ReduceOnPlateau.",
            "The logged rate is wrong while the training is right.",
            "Read optimizer.get_lr().",
        ),
    ),
    Gap(
        "one-cycle-end",
        Family.SCHEDULES,
        Status.VERIFIED,
        (Symptom.UPDATE,),
        ("torch.optim.lr_scheduler.OneCycleLR",),
        ("paddle.optimizer.lr.OneCycleLR",),
        Wording(
            "OneCycleLR ends at another rate and leaves momentum alone",
            "The last rate is max_lr / 25 / 1e4, and the momentum cycles too.",
            "The last rate is end_learning_rate, by default 0.0001. The momentum stays.",
            "The last updates have other rates, and momentum differs throughout.",
            "Pass end_learning_rate = max_lr / 25 / 1e4, and cycle_momentum=False in torch.",
        ),
    ),
    Gap(
        "polynomial-end",
        Family.SCHEDULES,
        Status.VERIFIED,
        (Symptom.UPDATE,),
        ("torch.optim.lr_scheduler.PolynomialLR",),
        ("paddle.optimizer.lr.PolynomialDecay",),
        Wording(
            "PolynomialDecay ends at another rate",
            "The last rate is 0.",
            "The last rate is end_lr, by default 0.0001.",
            "All rates are a little higher in the port.",
            "Pass end_lr=0.0.",
        ),
    ),
    Gap(
        "natural-exponential-and-noam",
        Family.SCHEDULES,
        Status.VERIFIED,
        (Symptom.UPDATE,),
        ("torch.optim.lr_scheduler.ExponentialLR",),
        (
            *("paddle.optimizer.lr.NaturalExpDecay", "paddle.optimizer.lr.NoamDecay"),
            "paddle.optimizer.lr.ExponentialDecay",
        ),
        Wording(
            "Two schedules are easily mistaken",
            "ExponentialLR multiplies by gamma at every step. There is no Noam schedule.",
            "NaturalExpDecay multiplies by exp(-gamma); ExponentialDecay is torch's. NoamDecay starts at 0.",
            "The curve of the rate has another shape, or the first update does nothing.",
            "Use ExponentialDecay for ExponentialLR, and LambdaLR in torch for Noam.",
        ),
        absent=("paddle.optimizer.lr.NaturalExpDecay", "paddle.optimizer.lr.NoamDecay"),
    ),
    Gap(
        "gradient-accumulation",
        Family.SCHEDULES,
        Status.VERIFIED,
        (Symptom.UPDATE,),
        ("torch.optim.lr_scheduler.LRScheduler", "torch.optim.Optimizer.step"),
        ("paddle.optimizer.lr.LRScheduler", "paddle.optimizer.Optimizer.step"),
        Wording(
            "Where the scheduler steps is up to the script",
            "Scripts step the scheduler after every update or after every epoch.",
            "Scripts step the scheduler after every update or after every epoch.",
            "With accumulated gradients the rate moves at another pace, and the numbers of updates differ.",
            "Count updates on both sides, and step the scheduler at the same ones.",
        ),
    ),
)
