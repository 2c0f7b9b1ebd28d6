"""Losses of (margin, y), and of whole rows."""

from riata.losses.absolute import Absolute
from riata.losses.base import Loss
from riata.losses.hinge import Hinge
from riata.losses.huber import Huber
from riata.losses.linear import Linear
from riata.losses.logistic import Logistic
from riata.losses.one_against_rest import OneAgainstRest
from riata.losses.quantile import Quantile
from riata.losses.row_loss import RowLoss
from riata.losses.smoothed import Smoothed
from riata.losses.smoothed_hinge import SmoothedHinge
from riata.losses.softmax import Softmax
from riata.losses.squared import Squared
from riata.losses.weighted import Weighted
from riata.registry import Registry

__all__ = [
    "Absolute",
    "Hinge",
    "Huber",
    "Linear",
    "Logistic",
    "Loss",
    "OneAgainstRest",
    "Quantile",
    "RowLoss",
    "Smoothed",
    "SmoothedHinge",
    "Softmax",
    "Squared",
    "Weighted",
]

#: All of them, for whoever needs a list.
REGISTRY: Registry[Loss] = Registry(Loss, __name__)
