"""The reference's parts as the guide asks for them."""

import sys

import numpy as np

sys.path.insert(0, "reference")

from network import SmallResNet
from pictures import loader
from training import loss, metric, optimizer, scheduler

__all__ = ["evaluation_data", "loss", "metric", "model", "optimizer", "scheduler", "training_data"]


def model():
    return SmallResNet()


def evaluation_data():
    return loader("pictures", "test")


def training_data():
    return loader("pictures", "train", order=np.random.default_rng(0).permutation(129).tolist())
