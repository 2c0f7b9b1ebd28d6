"""Models that are fitted in few dimensions, behind a public random projection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.estimators.base import BoundedModel
from riata.estimators.classifier import LogisticClassifier
from riata.estimators.parameters import documented
from riata.estimators.regressor import PrivateRegressor
from riata.projections import GivenProjection, Projection
from riata.sets import ConstraintSet, L1Ball
from riata.solvers import Projected, Solver


@dataclass(eq=False, repr=False, kw_only=True)
class ProjectedModel(BoundedModel):
    """What the two faces share."""

    dimension: int | str = "auto"
    projection: Any = "gaussian"
    compressed: bool = False
    clip: float | str = "auto"
    seed: int = 0

    def _set(self, bounds: Bounds) -> ConstraintSet:
        return L1Ball(self.radius)

    def _solver(self) -> tuple[str | Solver, int | str]:
        solver = Projected(
            self.steps,
            self.dimension,
            self._projection(),
            self.solver,
            self.clip,
            self.seed,
            self.compressed,
        )
        return solver, "auto"

    def _projection(self) -> str | Projection:
        given = not isinstance(self.projection, str | Projection)
        return GivenProjection(self.projection) if given else self.projection

    def n_coefficients(self, n_features: int) -> int:
        """How many coefficients a fit on rows of so many columns has, for each class."""
        phi = self._projection()
        return phi.n_features if self.compressed and isinstance(phi, Projection) else n_features

    def row_functions(self) -> np.ndarray:
        """The coefficients of rows as they are given to `predict`: one line for each class."""
        coef = np.atleast_2d(self.coef_)
        if not self.compressed:
            return coef
        phi = self._projection()
        assert isinstance(phi, Projection)
        return np.array([phi.forward(theta) for theta in coef])

    def _bounds_for(self, n_rows: int, n_features: int, n_classes: int) -> Bounds:
        bounds = super()._bounds_for(n_rows, n_features, n_classes)
        phi = self._projection()
        if not self.compressed:
            return bounds
        if isinstance(phi, Projection) and n_features != phi.dimension:
            raise InvalidArgument(
                f"Cannot use rows of {n_features} columns with a projection to {phi.dimension} "
                "dimensions. This is because compressed=True says that the rows are already "
                "projected. Pass rows with one column for each dimension, or compressed=False."
            )
        if bounds.max_length is None:
            raise InvalidArgument(
                f"Compressed rows need a bound on their length, got {bounds!r}: a projection "
                'mixes the columns. Pass bounds=Bounds(x=..., norm="l2").'
            )
        return bounds


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class ProjectedRegression(ProjectedModel, PrivateRegressor):
    """Linear regression behind a random projection, with differential privacy.

    Minimises the mean squared loss over the image of an l1 ball, then takes the smallest
    coefficients in the l1 norm that have this image: `coef_` is for rows before the projection.

    Parameters
    ----------
    $epsilon
    bounds : Bounds
        How far a row may reach: public, and required. With ``compressed=True`` it is the largest
        length of a projected row, ``Bounds(x=..., norm="l2")``.
    radius : float, default=1.0
        The largest l1 norm of the coefficients. Public.
    $projection
    $options

    Attributes
    ----------
    $coefficients
    $fitted

    Notes
    -----
    *Privacy.* As for `PrivateLasso`; see `riata.solvers.Projected`.

    Examples
    --------
    >>> import numpy as np
    >>> from riata import Bounds, ProjectedRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((5_000, 200)) / np.sqrt(200)
    >>> y = X[:, 3] - X[:, 7]
    >>> model = ProjectedRegression(1.0, bounds=Bounds(x=1.0, y=1.0, norm="l2"), dimension=20)
    >>> model.fit(X, y).coef_.shape
    (200,)
    """

    radius: float = 1.0


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class ProjectedClassifier(ProjectedModel, LogisticClassifier):
    """Logistic regression behind a random projection, with differential privacy.

    Minimises the mean logistic loss over the image of an l1 ball, then takes the smallest
    coefficients in the l1 norm that have this image: `coef_` is for rows before the projection.

    Parameters
    ----------
    $epsilon
    bounds : Bounds
        How far a row may reach: public, and required. With ``compressed=True`` it is the largest
        length of a projected row, ``Bounds(x=..., norm="l2")``. A bound on y
        is not needed.
    classes : array-like, or "observed"
        The labels: public, as for `PrivateLogisticRegression`.
    radius : float, default=10.0
        The largest l1 norm of the coefficients. Public.
    $projection
    $options

    Attributes
    ----------
    $class_coefficients
    $fitted

    Notes
    -----
    *Privacy.* As for `PrivateLasso`; see `riata.solvers.Projected`.
    """

    classes: Any = None
    radius: float = 10.0
