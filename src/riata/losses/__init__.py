"""Losses of (margin, y), and of whole rows."""

from riata.losses.absolute import Absolute
from riata.losses.base import Loss
from riata.losses.cox import Cox
from riata.losses.gamma import Gamma
from riata.losses.hinge import Hinge
from riata.losses.huber import Huber
from riata.losses.linear import Linear
from riata.losses.logistic import Logistic
from riata.losses.negative_binomial import NegativeBinomial
from riata.losses.nuisance import NuisanceLoss
from riata.losses.one_against_rest import OneAgainstRest
from riata.losses.ordered_logistic import OrderedLogistic
from riata.losses.poisson import Poisson
from riata.losses.quantile import Quantile
from riata.losses.row_loss import RowLoss
from riata.losses.smoothed import Smoothed
from riata.losses.smoothed_hinge import SmoothedHinge
from riata.losses.softmax import Softmax
from riata.losses.squared import Squared
from riata.losses.tweedie import Tweedie
from riata.losses.weighted import Weighted
from riata.losses.weighted_rows import WeightedRows
from riata.registry import Registry

__all__ = [
    "Absolute",
    "Cox",
    "Gamma",
    "Hinge",
    "Huber",
    "Linear",
    "Logistic",
    "Loss",
    "NegativeBinomial",
    "NuisanceLoss",
    "OneAgainstRest",
    "OrderedLogistic",
    "Poisson",
    "Quantile",
    "RowLoss",
    "Smoothed",
    "SmoothedHinge",
    "Softmax",
    "Squared",
    "Tweedie",
    "Weighted",
    "WeightedRows",
]

#: All of them, for whoever needs a list.
REGISTRY: Registry[Loss] = Registry(Loss, __name__)
