from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.optimize import brentq

from riata.errors import InvalidArgument
from riata.privacy.budget import check_number
from riata.row_norms import conjugate, embedding_norm, norm_order
from riata.sets.base import Ball, Width, rounding_of_simplex_projection
from riata.sets.l1 import L1Ball
from riata.sets.lift.equations import Equations, Linear
from riata.sets.lift.liftable import Liftable
from riata.sets.lift.smooth import flat, smooth
from riata.sets.widths import expected_l2, expected_linf
from riata.vectors import Vector, length

#: Newton's method doubles its digits in each step, from an error below log 2.
NEWTON_STEPS = 12

#: Entries below this may have lost digits: numbers near the smallest float64 have few.
TINY = 1e-280


class LpGeometry(Ball, Liftable):
    """What holds for every exponent `p`."""

    p: float

    @property
    def _dual_order(self) -> float:
        return conjugate(self.p)

    def minimiser(self, gradient: np.ndarray) -> Vector:
        scale = np.abs(gradient).max(initial=0.0)
        if scale == 0:
            return self.start()
        if self.p == 1:
            return L1Ball(self.radius, self.required_size()).minimiser(gradient)
        if np.isinf(self.p):
            return Vector.of(-self.radius * np.sign(gradient))
        weight = (np.abs(gradient) / scale) ** (self._dual_order - 1)
        return Vector.of(-self.radius * np.sign(gradient) * weight / _length(weight, self.p))

    def project(self, v: np.ndarray) -> np.ndarray:
        outside = self.minkowski_norm(v)
        if outside <= 1:
            return np.array(v, dtype=np.float64)
        if self.p == 1:
            return L1Ball(self.radius).project(v)
        if np.isinf(self.p):
            return np.clip(v, -self.radius, self.radius)
        if self.p == 2 or outside <= 1 + 1e-12:
            return v / outside
        size = np.abs(v)

        def excess(log_multiplier: float) -> float:
            return float(_length(_shrunk(size, log_multiplier, self.p), self.p) / self.radius - 1)

        low, high = -1.0, 1.0
        while excess(low) < 0:
            low *= 2
        while excess(high) > 0:
            high *= 2
        nearest = _shrunk(size, float(brentq(excess, low, high, xtol=1e-13)), self.p)
        return np.sign(v) * nearest * min(1.0, self.radius / _length(nearest, self.p))

    def projection_error(self, largest: float) -> float | None:
        if self.p == 1:
            return rounding_of_simplex_projection(self.required_size(), self.radius, largest)
        if np.isinf(self.p):
            return 0.0
        if self.p == 2:
            return 2.0**-45 * self.radius
        longest = np.sqrt(self.required_size()) * largest + self.radius_in("l2")
        return float((self.p + 16 + 1 / (self.p - 1)) * 2.0**-44 * longest)

    def certified_project(self, v: np.ndarray) -> tuple[np.ndarray, float]:
        if self.p in (1, 2, np.inf):
            return super().certified_project(v)
        s = self.project(v)
        return s, self._distance(v, s)

    def _distance(self, v: np.ndarray, s: np.ndarray) -> float:
        """How far s may be from the point of the ball nearest to v, whatever s is.

        s is the nearest point to s + multiplier * normal of the ball that it bounds, and that is
        near to v, as that ball is to this one.
        """
        longest = length(v) + length(s)
        rounding = (self.p + 32) * 2.0**-50 * longest
        outside = self.minkowski_norm(s) - 1
        if np.array_equal(s, v):
            return rounding + max(outside, 0.0) * longest
        size = np.abs(s)
        normal = np.sign(s) * (size / size.max(initial=1e-300)) ** (self.p - 1)
        normal[size < TINY] = 0.0  # of few bits; the multiplier may be any number
        rest = v - s
        multiplier = max(float(normal @ rest / max(normal @ normal, 1e-300)), 0.0)
        left = rest - multiplier * normal
        # Entries below the smallest float64 are 0 in s, and may have any multiple of the normal.
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(np.abs(v)) - np.log(multiplier)
        gone = (size < TINY) & (np.log(size.max()) + logs / (self.p - 1) < -600)
        apart = length(np.where(gone, 0.0, left))
        return apart + 2 * (abs(outside) + 2.0**-46) * (longest + apart) + rounding

    def minkowski_norm(self, v: np.ndarray) -> float:
        return _length(v, self.p) / self.radius

    def dual_norm(self, v: np.ndarray) -> float:
        return self.radius * _length(v, self._dual_order)

    def radius_in(self, norm: str) -> float:
        return self.size_in(norm_order(norm))

    def size_in(self, order: float) -> float:
        return self.radius * embedding_norm(self.required_size(), self.p, order)

    def weighted_reach(self, weights: np.ndarray) -> float:
        return self.dual_norm(weights)

    def gaussian_width(self, draws: int = 400) -> Width:
        size = self.required_size()
        if self.p == 1:
            return Width(self.radius * expected_linf(size), 0.0)
        if self.p == 2:
            return Width(self.radius * expected_l2(size), 0.0)
        if np.isinf(self.p):
            return Width(self.radius * size * np.sqrt(2 / np.pi), 0.0)
        return super().gaussian_width(draws)

    @property
    def is_euclidean_ball(self) -> bool:
        return self.p == 2

    def smallest(self, equations: Equations) -> np.ndarray | None:
        if self.p == 1:
            return L1Ball(self.radius).smallest(equations)
        if self.p == 2:
            return equations.back(equations.target)
        return flat(equations) if np.isinf(self.p) else smooth(equations, self.p)

    def nearest(self, phi: Linear, v: np.ndarray, tolerance: float = 0.0) -> np.ndarray:
        if self.p == 1:
            return L1Ball(self.radius, self.n_features).nearest(phi, v, tolerance)
        return super().nearest(phi, v, tolerance)


@dataclass(frozen=True)
class LpBall(LpGeometry):
    """All theta with ||theta||_p <= radius, for 1 <= p <= infinity.

    Parameters
    ----------
    p : float
        The exponent, ``float("inf")`` included.
    radius : float, default=1.0
    n_features : int, optional
        The dimension, if it is already known.
    """

    p: float
    radius: float = 1.0
    n_features: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not check_number("p", self.p) >= 1:
            raise InvalidArgument(
                f"p={self.p!r} must be at least 1: below it the ball is not convex. "
                "Use p between 1 and infinity."
            )

    @classmethod
    def examples(cls, size: int) -> tuple[Self, ...]:
        return tuple(cls(p, 0.9, size) for p in (1.0, 1.5, 2.0, 3.0, np.inf))


@dataclass(frozen=True)
class L2Ball(LpGeometry):
    """All theta with ||theta||_2 <= radius.

    Parameters
    ----------
    radius : float, default=1.0
    n_features : int, optional
        The dimension, if it is already known.
    """

    radius: float = 1.0
    n_features: int | None = None
    p: ClassVar[float] = 2.0  # type: ignore[misc]
    supports_refit: ClassVar[bool] = True


def _length(v: np.ndarray, p: float) -> float:
    """||v||_p, for lengths and exponents whose powers would overflow or vanish."""
    scale = np.abs(v).max(initial=0.0)
    if scale == 0:
        return 0.0
    return float(scale * (length(v / scale) if p == 2 else np.linalg.norm(v / scale, p)))


def _shrunk(size: np.ndarray, log_multiplier: float, p: float) -> np.ndarray:
    """The u in [0, size] with u + multiplier * u^(p-1) = size, by Newton's method for log u.

    The logarithm of the left side is convex and increasing in log u, and log 2 too large at most
    where the larger of its two terms is `size`: from there each step goes down towards the root.
    """
    out = np.zeros_like(size)
    goal = np.log(size[size > 0])
    x = np.minimum(goal, (goal - log_multiplier) / (p - 1))
    for _ in range(NEWTON_STEPS):
        second = log_multiplier + (p - 1) * x
        both = np.logaddexp(x, second)
        x = x - (both - goal) / (1 + (p - 2) * np.exp(second - both))
    out[size > 0] = np.exp(x)
    return out
