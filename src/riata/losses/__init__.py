"""Scalar losses of (margin, y)."""

from riata.losses.base import Loss
from riata.losses.huber import Huber
from riata.losses.logistic import Logistic
from riata.losses.one_against_rest import OneAgainstRest
from riata.losses.smoothed_hinge import SmoothedHinge
from riata.losses.squared import Squared
from riata.losses.weighted import Weighted
from riata.registry import Registry

__all__ = [
    "Huber",
    "Logistic",
    "Loss",
    "OneAgainstRest",
    "SmoothedHinge",
    "Squared",
    "Weighted",
]

#: All of them, for whoever needs a list.
REGISTRY: Registry[Loss] = Registry(Loss, __name__)
