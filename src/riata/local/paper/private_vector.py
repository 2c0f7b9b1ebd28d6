"""Basic Private Vector: what one device sends in place of a vector of the unit ball.

The proof is in docs/privacy/private_vector.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from riata.arguments import check_known
from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.grid import ROUNDED_UP, X_STEPS
from riata.mechanisms.additive import NormalDraws, rounded
from riata.mechanisms.noise import Noise
from riata.numeric import row_slices
from riata.privacy.accountants import spent
from riata.privacy.budget import Budget
from riata.privacy.calibrate import calibrate
from riata.privacy.events import Composed, Event, Gaussian, compose

#: Any vector of the unit ball may be replaced by any other.
DIAMETER = 2.0

#: How many numbers are drawn at a time.
_BLOCK = 2**20

#: How several private vectors of one device share its budget.
COMPOSITIONS = ("basic", "exact")


@dataclass(frozen=True)
class PrivateVector:
    """Algorithm 1 of Zheng, Mou and Wang (2017): clip to a ball, add normal noise.

    Parameters
    ----------
    noise_multiplier : float
        The standard deviation of the noise over the diameter of the ball.
    reach : float, default=1.0
        The radius of the ball, public.

    Notes
    -----
    *Privacy.* One report satisfies the event ``Gaussian(noise_multiplier)`` for any two inputs,
    whatever they contain: NaN counts as 0, and longer vectors are shortened.

    *Differences from the paper.* The noise is calibrated by the exact curve of the normal
    distribution to the diameter 2 of the unit ball (`calibrated`); line 1 of the paper has a
    classical formula for sensitivity 1. The report lies on a public grid.
    """

    noise_multiplier: float
    reach: float = 1.0

    def __post_init__(self) -> None:
        for name in ("noise_multiplier", "reach"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise InvalidArgument(
                    f"{name}={value!r} must be positive and finite: it is public and scales the "
                    "noise. Use PrivateVector.calibrated to get it from epsilon and delta."
                )

    @classmethod
    def calibrated(cls, epsilon: float, delta: float, reach: float = 1.0) -> PrivateVector:
        """The least noise with which one report is (epsilon, delta)-private."""
        return cls(noise_multiplier_for(epsilon, delta), reach)

    @property
    def event(self) -> Event:
        return Gaussian(self.noise_multiplier)

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise on each coordinate."""
        return self._scale * self._step

    @property
    def grid(self) -> float:
        """What every released number is a multiple of: a power of two times a step of the ball."""
        return math.ldexp(self._step, max(math.frexp(self._scale)[1] - 11, 0))

    @property
    def variance(self) -> float:
        """The variance of each coordinate of a report, the rounding to the grid included."""
        return self.sigma**2 + self.grid**2 / 12

    @property
    def _step(self) -> float:
        return self.reach / X_STEPS

    @property
    def _scale(self) -> float:
        """The standard deviation in steps."""
        return self.noise_multiplier * DIAMETER * X_STEPS * ROUNDED_UP

    def report(self, x: Any, noise: Noise) -> np.ndarray:
        """One person's report of the vector `x`."""
        return self.reports(np.atleast_1d(np.asarray(x, dtype=np.float64))[None, :], noise)[0]

    def reports(self, rows: Any, noise: Noise) -> np.ndarray:
        """The same for many people at once, one in each row."""
        rows = np.asarray(rows, dtype=np.float64)
        out = np.empty(rows.shape)
        ball, scale = Bounds(self.reach, norm="l2"), np.asarray(self._scale)
        for few in row_slices(rows.shape[0], rows.shape[1], _BLOCK):
            steps = ball.grid_x(rows[few]).astype(np.int64).ravel()  # lines 2 to 4
            sums = rounded(steps, scale, NormalDraws(steps.size, noise))  # line 5
            np.multiply(sums.reshape(-1, rows.shape[1]), self._step, out=out[few])
        return out

    def __str__(self) -> str:
        return f"Basic Private Vector, ball of radius {self.reach:.4g}, noise {self.sigma:.4g}"


@lru_cache(maxsize=256)
def noise_multiplier_for(epsilon: float, delta: float) -> float:
    """The noise multiplier of one normal release that is exactly (epsilon, delta)-private."""
    budget = check_budget(epsilon, delta)
    return 1 / calibrate(lambda strength: Gaussian(1 / strength), budget)


def check_budget(epsilon: float, delta: float) -> Budget:
    """A budget that normal noise can keep."""
    budget = Budget(epsilon, delta)
    if not math.isfinite(budget.epsilon):
        raise InvalidArgument(
            f"epsilon={epsilon!r} must be finite: a report without noise is the person's own row, "
            "and no device sends that. Common choices lie between 0.5 and 10."
        )
    if budget.delta == 0:
        raise InvalidArgument(
            "delta=0 asks for pure differential privacy, which normal noise cannot give. "
            "Pass a positive delta, such as 1e-6."
        )
    return budget


def split_budget(
    shares: Sequence[tuple[float, int]], epsilon: float, delta: float, composition: str = "basic"
) -> list[float]:
    """The noise multipliers of several private vectors that one device sends.

    Parameters
    ----------
    shares : sequence of (float, int)
        For each kind of vector, the part of epsilon and of delta that each copy gets, and the
        number of copies. Parts times copies sum to 1.
    epsilon, delta : float
        The budget of the device.
    composition : {"basic", "exact"}, default="basic"
        "basic" gives each copy its part, as the paper does (Lemma 2). "exact" divides all noise by
        one number so that the exact curve of all of them together meets the budget.
    """
    budget = check_budget(epsilon, delta)
    check_known(
        "composition", composition, COMPOSITIONS,
        "it says how the vectors that one device sends share its budget",
    )  # fmt: skip
    parts = [noise_multiplier_for(budget.epsilon * s, budget.delta * s) for s, _ in shares]
    if composition == "basic":
        return parts

    def event_at(strength: float) -> Composed:
        return composed_event([z / strength for z in parts], [count for _, count in shares])

    strength = calibrate(event_at, budget)
    return [z / strength for z in parts]


def composed_event(multipliers: Sequence[float], counts: Sequence[int]) -> Composed:
    """The event of everything that one device sends."""
    return compose(*((Gaussian(z), k) for z, k in zip(multipliers, counts, strict=True)))


def exact_epsilon(event: Event, delta: float) -> float:
    """What the reports of one device cost by the exact curve, however they were calibrated."""
    return spent(event, delta).epsilon
