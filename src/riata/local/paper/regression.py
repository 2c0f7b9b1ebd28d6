"""Algorithm 3: l1-constrained linear regression from private vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from riata.errors import InvalidArgument
from riata.local.arguments import check_positive, check_whole
from riata.local.learners.moments import raise_eigenvalues
from riata.local.paper.moment_learner import MomentLearner
from riata.local.paper.moments import Moments, check_moments
from riata.local.paper.private_vector import check_budget
from riata.local.paper.projection import (
    check_dimension,
    check_reach,
    describe_projection,
    project_rows,
    public_projection,
)
from riata.mechanisms.noise import Noise
from riata.projections import Projection
from riata.sets import L1Ball

#: The minimum is found to this part of the objective's scale.
_TOLERANCE = 1e-10
_MOST_STEPS = 20_000


class PaperL1Regression(MomentLearner):
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
        epsilon = check_budget(self.epsilon, self.delta).epsilon
        if n_users is not None:
            n_users = check_whole("n_users", n_users, "it is the number of people")
            automatic = epsilon * math.sqrt(n_users * math.log(max(n_features, 2)))
        dimension = check_dimension(wanted, automatic, n_features)
        return public_projection(dimension, n_features, self.projection_seed)

    def _map(self, n_features: int, n_users: int | None) -> Projection:
        return self.projection(n_features, n_users)

    def _server_map(self, width: int, n_features: int) -> Projection:
        if width > n_features:
            raise InvalidArgument(
                f"The reports have {width} coordinates and rows {n_features} columns: a device "
                "sends at most as many. Pass the n_features that the devices had."
            )
        return public_projection(width, n_features, self.projection_seed)

    def _rows(self, X: Any, public: Projection) -> np.ndarray:
        return project_rows(X, public)

    def _reach(self, public: Projection) -> float:
        return check_reach(self.reach, public.dimension, public.n_features)

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
        second, cross = check_moments(second, cross)
        projection = self.projection(len(cross), n_users)
        if projection.dimension < projection.n_features:
            phi = projection.matrix()
            second, cross = phi @ second @ phi.T, phi @ cross
        return self._simulated(n_users, second, cross, target_second, projection)

    def predict(self, X: Any) -> np.ndarray:
        """x . coef_ for each row."""
        return np.asarray(X @ self.coef_)

    def _set_model(self, total: Moments, public: Projection, device_noise: Noise | None) -> Self:
        vector, target = self.vectors(public)
        q = raise_eigenvalues(total.debiased(vector.variance)) / total.n  # line 5
        b = public.back(total.cross / total.n)
        ball = L1Ball(check_positive("radius", self.radius, "it bounds the coefficients"))

        def gradient(w: np.ndarray) -> np.ndarray:
            return public.back(q @ public.forward(w)) - b

        self.coef_ = minimize_over_l1_ball(
            gradient, _largest_curvature(gradient, b), ball, public.n_features
        )  # line 6
        self.sigma_, self.target_sigma_ = vector.sigma, target.sigma
        self.privacy_ = self._statement(
            [(vector, 1), (target, 1)],
            {
                "people": total.n,
                "columns": public.n_features,
                "coordinates sent": public.dimension,
                "projection": describe_projection(public, self.projection_seed),
                "radius": self.radius,
            },
            device_noise,
            composition=self.composition,
        )
        return self


def minimize_over_l1_ball(
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


def _largest_curvature(gradient: Callable[[np.ndarray], np.ndarray], b: np.ndarray) -> float:
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
