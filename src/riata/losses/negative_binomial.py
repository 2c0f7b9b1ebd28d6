from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from riata.losses.exponential import logarithm
from riata.losses.log_link import LogLinkLoss, times_log
from riata.losses.logistic_function import exp_below
from riata.privacy.budget import check_scale


@dataclass(frozen=True)
class NegativeBinomial(LogLinkLoss):
    """Half the negative binomial deviance of counts with variance mean + dispersion * mean^2.

    Its slope is never more than 1 / dispersion nor less than -y, and its curvature is bounded.

    Parameters
    ----------
    dispersion : float, default=1.0
        Statsmodels calls it alpha. Public.
    """

    dispersion: float = 1.0
    name = "negative binomial"
    twice_differentiable = True

    def __post_init__(self) -> None:
        check_scale(
            "dispersion", self.dispersion,
            "it is how much more than the mean the variance is. For 0 use Poisson().",
        )  # fmt: skip

    def _spread(self, margin: np.ndarray, e: np.ndarray) -> np.ndarray:
        """1 + dispersion * mean, times e^-margin where the margin is positive."""
        return np.where(margin <= 0, 1.0 + self.dispersion * e, e + self.dispersion)

    def rise(self, margin: np.ndarray) -> np.ndarray:
        e = exp_below(margin)
        return np.where(margin <= 0, e, 1.0) / self._spread(margin, e)

    def fall(self, margin: np.ndarray) -> np.ndarray:
        e = exp_below(margin)
        return np.where(margin <= 0, 1.0, e) / self._spread(margin, e)

    def curvatures(self, up: np.ndarray, down: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.rise(up) * self.fall(up), self.dispersion * self.rise(down) * self.fall(down)

    def integrals(self, up: np.ndarray, down: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        of_rise, of_fall = (logarithm(self._spread(m, exp_below(m))) for m in (up, down))
        return (np.maximum(up, 0.0) + of_rise) / self.dispersion, of_fall - np.minimum(down, 0.0)

    def least(self, y: np.ndarray) -> np.ndarray:
        return (y + 1 / self.dispersion) * logarithm(1.0 + self.dispersion * y) - times_log(y)

    def curvature_bound(self, y: float) -> float:
        return (y + 1 / self.dispersion) / 4

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(0.4)
