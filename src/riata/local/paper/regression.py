"""Algorithm 3: l1-constrained linear regression from private vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from riata.arguments import check_positive, check_whole
from riata.errors import InvalidArgument
from riata.local.learners.moments import raise_eigenvalues
from riata.local.paper.constrained import Multiple, largest_curvature, minimize_over
from riata.local.paper.error_bounds import projected_risk, projection_risk
from riata.local.paper.moment_learner import HALVES, MomentLearner
from riata.local.paper.moments import Moments, check_moments
from riata.local.paper.private_vector import PrivateVector, check_budget, split_budget
from riata.local.paper.projection import (
    check_dimension,
    check_reach,
    describe_projection,
    given_projection,
    is_identity,
    project_rows,
    public_projection,
)
from riata.mechanisms.noise import Noise
from riata.privacy.budget import check_open_unit
from riata.projections import Projection
from riata.sets import L1Ball
from riata.sets.base import ConstraintSet
from riata.sets.lift import Liftable


@dataclass(eq=False, repr=False, kw_only=True)
class PaperL1Regression(MomentLearner):
    """Algorithm 3 of Zheng, Mou and Wang (2017), with its errata applied.

    Each device sends a private vector of its projected row and one of its target. The server takes
    the noise out of the Gram matrix, projects it to the positive semidefinite cone and minimises
    over ||w||_1 <= radius. A reference: it needs 10^9 people and more.

    Parameters
    ----------
    epsilon, delta : float
        The budget of each device. delta must be positive.
    dimension : int, "auto", "balanced" or None, default="auto"
        The number of projected coordinates. "auto" is sqrt(n epsilon^2 log d) as in Theorem 3,
        rounded up. "balanced" has the constants, too: it is where the error of projecting,
        sqrt(log d / m), is as large as that of the noise, sigma^2 sqrt(m / n). With as many as
        there are columns, or None, nothing is projected.
    reach : float or "auto", default="auto"
        The length to which projected rows are clipped. The paper has 1, which shortens about half
        of them; "auto" shortens few.
    radius : float, default=1.0
        The largest l1 norm of the coefficients.
    constraint : ConstraintSet, optional
        A set for the coefficients in place of the l1 ball, such as ``GroupL1Ball`` or ``Simplex``.
    x_radius, y_radius : float, default=1.0
        Rows longer than `x_radius` are shortened, and targets clipped to [-y_radius, y_radius].
    projection_matrix : array-like or Projection, optional
        A public matrix in place of a normal one, with a row for each coordinate that is sent.
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

    epsilon: float
    delta: float
    dimension: int | str | None = "auto"
    reach: float | str = "auto"
    radius: float = 1.0
    constraint: ConstraintSet | None = None
    x_radius: float = 1.0
    y_radius: float = 1.0
    projection_matrix: Any = None
    composition: str = "basic"
    projection_seed: int = 0
    random_state: int | None = None

    def projection(self, n_features: int, n_users: int | None = None) -> Projection:
        """The public matrix: Phi' of the paper, with a row for each coordinate that is sent."""
        if self.projection_matrix is not None:
            return given_projection(self.projection_matrix, n_features)
        wanted = n_features if self.dimension is None else self.dimension
        automatic = None
        epsilon = check_budget(self.epsilon, self.delta).epsilon
        if n_users is not None:
            n_users = check_whole("n_users", n_users, "it is the number of people")
            automatic = math.sqrt(n_users * math.log(max(n_features, 2)))
            if isinstance(wanted, str) and wanted == "balanced":
                x, _ = split_budget(HALVES, self.epsilon, self.delta, self.composition)
                wanted, automatic = "auto", automatic / PrivateVector(x).variance
            else:
                automatic *= epsilon
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
        if self.projection_matrix is not None:
            return given_projection(self.projection_matrix, n_features)
        return public_projection(width, n_features, self.projection_seed)

    def _rows(self, X: Any, public: Projection) -> np.ndarray:
        return project_rows(X, public, check_positive("x_radius", self.x_radius, "it bounds rows"))

    def _targets(self, y: np.ndarray) -> np.ndarray:
        return y / check_positive("y_radius", self.y_radius, "it bounds targets")

    def _constraint(self) -> ConstraintSet:
        ball = L1Ball(check_positive("radius", self.radius, "it bounds the coefficients"))
        return ball if self.constraint is None else self.constraint

    def _reach(self, public: Projection) -> float:
        return check_reach(self.reach, public)

    def risk_bound(self, n_users: int, n_features: int, failure: float = 0.05) -> float:
        """What the excess risk exceeds with probability `failure` at most: Lemma 6, Theorem 3.

        Of half the mean squared error, in units of `y_radius` squared, for margins of at most
        `y_radius` and rows that no device shortens. The projection is taken to be normal, drawn
        after the rows.
        """
        failure = check_open_unit("failure", failure)
        projection = self.projection(n_features, n_users)
        whole = is_identity(projection)
        share = failure if whole else failure / 2
        C = self._constraint().sized(n_features)
        scale = float(self.x_radius) / float(self.y_radius)  # margins of scaled rows and targets
        radius = scale * C.radius_in("l2")
        longest = radius
        if not whole:
            stretched = float(np.linalg.norm(projection.matrix(), 2)) * C.radius_in("l2")
            known = C.image_radius(projection) if isinstance(C, Liftable) else stretched
            longest = scale * min(known, stretched)
        risk = projected_risk(
            *self.vectors(projection), n_users, projection.dimension, longest, share
        )
        if whole:
            return risk
        width = scale * C.gaussian_width().value
        return risk + projection_risk(projection.dimension, width, radius, n_users, share)

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
        second, cross = second / self.x_radius**2, cross / (self.x_radius * self.y_radius)
        target_second = target_second / self.y_radius**2
        projection = self.projection(len(cross), n_users)
        if not is_identity(projection):
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
        constraint = self._constraint()
        unit = float(self.x_radius) / float(self.y_radius)
        over = Multiple(constraint.sized(public.n_features), unit)

        def gradient(w: np.ndarray) -> np.ndarray:
            return public.back(q @ public.forward(w)) - b

        w = minimize_over(gradient, largest_curvature(gradient, b), over, public.n_features)
        self.coef_ = w / unit  # line 6
        self.sigma_, self.target_sigma_ = vector.sigma, target.sigma
        self.privacy_ = self._statement(
            [(vector, 1), (target, 1)],
            {
                "people": total.n,
                "columns": public.n_features,
                "coordinates sent": public.dimension,
                "projection": describe_projection(public, self.projection_seed),
                "constraint": str(constraint),
                "radii of rows and targets": f"{self.x_radius:g}, {self.y_radius:g}",
            },
            device_noise,
            composition=self.composition,
        )
        return self
