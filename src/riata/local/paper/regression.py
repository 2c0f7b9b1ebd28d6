"""Algorithm 3: l1-constrained linear regression from private vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from riata.errors import InvalidArgument
from riata.local.paper.base import (
    PaperLearner,
    check_positive,
    check_rows,
    check_whole,
    one_row,
    people,
)
from riata.local.paper.moments import (
    Moments,
    Reports,
    checked_moments,
    floored,
    simulated_moments,
)
from riata.local.paper.private_vector import PrivateVector, checked_budget, shared
from riata.local.paper.projected import (
    checked_dimension,
    checked_reach,
    projected,
    public_projection,
)
from riata.mechanisms.noise import Noise
from riata.projections import Projection
from riata.sets import L1Ball

#: One vector and one number share the budget of a device (lines 2 and 3).
HALVES = ((0.5, 1), (0.5, 1))

#: The minimum is found to this part of the objective's scale.
_TOLERANCE = 1e-10
_MOST_STEPS = 20_000


class PaperL1Regression(PaperLearner):
    """Algorithm 3 of Zheng, Mou and Wang (2017), with its errata applied.

    Each device sends a private vector of its projected row and one of its target. The server takes
    the noise out of the Gram matrix, projects it to the positive semidefinite cone and minimises
    over ||w||_1 <= radius. A reference: it needs 10^9 people and more.

    Parameters
    ----------
    epsilon, delta : float
        The budget of each device. delta must be positive.
    dimension : int, "auto" or None, default="auto"
        The number of projected coordinates. "auto" is sqrt(n epsilon^2 log d) as in Theorem 3,
        rounded up. With as many as there are columns, or None, nothing is projected.
    reach : float or "auto", default="auto"
        The length to which projected rows are clipped. The paper has 1, which shortens about half
        of them; "auto" shortens few.
    radius : float, default=1.0
        The largest l1 norm of the coefficients.
    composition : {"basic", "exact"}, default="basic"
        "basic" gives both vectors half of epsilon and of delta, as the paper does; "exact"
        calibrates both together, with less noise.
    projection_seed : int, default=0
        Names the public projection.
    random_state : int, optional
        Makes a fit reproducible, for tests. Such a model is marked as not private.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    sigma_ : float
        The standard deviation of the noise on each coordinate of a report's vector.
    target_sigma_ : float
        And on its target.
    privacy_ : Statement

    Notes
    -----
    *Privacy.* Each person's report is (epsilon, delta)-locally private, whatever the row: rows are
    clipped to the unit ball, targets to [-1, 1], and projected rows to `reach`. Public are the
    number of people and columns, the projection and every parameter.

    *Differences from the paper.* See docs/algorithms/local_paper.md: the calibration, the clipping
    after the projection, and the variance that is subtracted in line 5.
    """

    algorithm = "l1-constrained linear regression (Zheng, Mou, Wang 2017, Algorithm 3)"

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        dimension: int | str | None = "auto",
        reach: float | str = "auto",
        radius: float = 1.0,
        composition: str = "basic",
        projection_seed: int = 0,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.dimension = dimension
        self.reach = reach
        self.radius = radius
        self.composition = composition
        self.projection_seed = projection_seed
        self.random_state = random_state

    def projection(self, n_features: int, n_users: int | None = None) -> Projection:
        """The public matrix: Phi' of the paper, with a row for each coordinate that is sent."""
        wanted = n_features if self.dimension is None else self.dimension
        automatic = None
        epsilon = checked_budget(self.epsilon, self.delta).epsilon
        if n_users is not None:
            automatic = epsilon * math.sqrt(n_users * math.log(max(n_features, 2)))
        dimension = checked_dimension(wanted, automatic, n_features)
        return public_projection(dimension, n_features, self.projection_seed)

    def vectors(self, projection: Projection) -> tuple[PrivateVector, PrivateVector]:
        """How a projected row and a target are sent."""
        reach = checked_reach(self.reach, projection.dimension, projection.n_features)
        x, y = shared(HALVES, self.epsilon, self.delta, self.composition)
        return PrivateVector(x, reach), PrivateVector(y)

    def report(self, x: Any, y: float, *, noise: Noise, n_users: int | None = None) -> Reports:
        """What the device of one person sends: lines 2 and 3."""
        rows = one_row(x)
        sent = self._reports(rows, np.array([y]), self.projection(rows.shape[1], n_users), noise)
        return Reports(sent.z[0], sent.v[0])

    def _reports(self, X: Any, y: np.ndarray, projection: Projection, noise: Noise) -> Reports:
        vector, target = self.vectors(projection)
        z = vector.reports(projected(X, projection), noise)
        return Reports(z, target.reports(y[:, None], noise)[:, 0])

    def learn(self, reports: Reports | list[Reports], *, n_features: int) -> Self:
        """What the server does with the reports of all people: lines 5 and 6."""
        if isinstance(reports, list):
            reports = Reports(np.stack([r.z for r in reports]), np.stack([r.v for r in reports]))
        return self._learned(Moments.of(reports), n_features, None)

    def fit(self, X: Any, y: Any) -> Self:
        """Play every device, then the server.

        Parameters
        ----------
        X : array-like or sparse of shape (n_people, n_features)
        y : array-like of shape (n_people,)
        """
        X, y = check_rows(X, y)
        noise, projection = self._noise(), self.projection(X.shape[1], X.shape[0])
        total: Moments | None = None
        for few in people(X.shape[0], X.shape[1]):
            part = Moments.of(self._reports(X[few], y[few], projection, noise))
            total = part if total is None else total + part
        assert total is not None
        return self._learned(total, X.shape[1], noise)

    def fit_moments(self, n_users: int, second: Any, cross: Any, target_second: float) -> Self:
        """The fit that `n_users` people would give, from the moments of their rows alone.

        For benchmarks: the sums of all reports are drawn at once by `simulated_moments`, which is
        exact for rows with these moments that no device has to clip.

        Parameters
        ----------
        n_users : int
        second : array-like of shape (n_features, n_features)
            The mean of x x'.
        cross : array-like of shape (n_features,)
            The mean of y x.
        target_second : float
            The mean of y^2.
        """
        n_users = check_whole("n_users", n_users, "it is the number of people")
        second, cross = checked_moments(second, cross)
        noise, projection = self._noise(), self.projection(len(cross), n_users)
        if projection.dimension < projection.n_features:
            phi = projection.matrix()
            second, cross = phi @ second @ phi.T, phi @ cross
        total = simulated_moments(
            n_users, second, cross, target_second, *self.vectors(projection), noise
        )
        return self._learned(total, projection.n_features, noise)

    def predict(self, X: Any) -> np.ndarray:
        """x . coef_ for each row."""
        return np.asarray(X @ self.coef_)

    def _learned(self, total: Moments, n_features: int, played: Noise | None) -> Self:
        dimension = len(total.cross)
        projection = public_projection(dimension, n_features, self.projection_seed)
        if projection.dimension != dimension:
            raise InvalidArgument(
                f"The reports have {dimension} coordinates and rows {n_features} columns: a device "
                "sends at most as many. Pass the n_features that the devices had."
            )
        vector, target = self.vectors(projection)
        q = floored(total.debiased(vector.variance)) / total.n  # line 5
        b = projection.back(total.cross / total.n)
        ball = L1Ball(check_positive("radius", self.radius, "it bounds the coefficients"))

        def gradient(w: np.ndarray) -> np.ndarray:
            return projection.back(q @ projection.forward(w)) - b

        self.coef_ = least(gradient, _largest(gradient, b), ball, n_features)  # line 6
        self.sigma_, self.target_sigma_ = vector.sigma, target.sigma
        self.privacy_ = self._statement(
            [(vector, 1), (target, 1)],
            {
                "people": total.n,
                "columns": n_features,
                "coordinates sent": dimension,
                "projection": f"seed {self.projection_seed}" if dimension < n_features else "none",
                "radius": self.radius,
            },
            played,
            composition=self.composition,
        )
        return self


def least(
    gradient: Callable[[np.ndarray], np.ndarray], curvature: float, ball: L1Ball, n_features: int
) -> np.ndarray:
    """The minimum of a convex quadratic over an l1 ball, by accelerated projected gradients.

    Beck and Teboulle (2009), restarted where the momentum points uphill. It stops when the
    Frank-Wolfe gap, which bounds the excess of the objective, is small.
    """
    w = np.zeros(n_features)
    if curvature == 0:
        curvature = 1.0
    ahead, momentum = w, 1.0
    for _ in range(_MOST_STEPS):
        slope = gradient(ahead)
        moved = ball.project(ahead - slope / curvature)
        if (ahead - moved) @ (moved - w) > 0:
            ahead, momentum = w, 1.0
            continue
        faster = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = moved + (momentum - 1) / faster * (moved - w)
        w, momentum = moved, faster
        slope = gradient(w)
        largest = float(np.abs(slope).max()) * ball.radius
        if float(slope @ w) + largest <= _TOLERANCE * max(largest, curvature * ball.radius**2):
            break
    return w


def _largest(gradient: Callable[[np.ndarray], np.ndarray], b: np.ndarray) -> float:
    """The largest eigenvalue of the curvature, a little more, by power iteration."""
    v = np.cos(np.arange(1, len(b) + 1))  # any vector that is orthogonal to nothing in particular
    value = 0.0
    for _ in range(200):
        v = v / np.linalg.norm(v)
        image = gradient(v) + b
        previous, value = value, float(np.linalg.norm(image))
        if value == 0 or abs(value - previous) <= 1e-6 * value:
            break
        v = image
    return 1.02 * value
