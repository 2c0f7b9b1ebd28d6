"""Models that are fitted in few dimensions, behind a public random projection."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.estimators.base import PrivateLinearModel
from riata.estimators.classifier import LogisticClassifier
from riata.estimators.regressor import PrivateRegressor
from riata.projections import GivenProjection, Projection
from riata.sets import ConstraintSet, L1Ball
from riata.solvers import Projected, Solver

if TYPE_CHECKING:  # SQLAlchemy is slow to import
    from riata.privacy.ledger import Ledger


class ProjectedModel(PrivateLinearModel):
    """What the two faces share."""

    radius: float
    solver: str | Solver
    steps: int | str
    dimension: int | str
    projection: Any
    compressed: bool
    clip: float | str
    seed: int

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


@dataclass(eq=False, repr=False)
class ProjectedRegression(ProjectedModel, PrivateRegressor):
    """Linear regression behind a random projection, with differential privacy.

    Minimises the mean squared loss over the image of an l1 ball, then takes the smallest
    coefficients in the l1 norm that have this image.

    Parameters
    ----------
    epsilon : float
        The privacy budget.
    delta : float, optional
        The probability with which epsilon may fail. 0 asks for pure differential privacy. If it
        is not given it is the smaller of 1e-6 and a tenth of 1 / n_rows.
    bounds : Bounds
        How far a row may reach: public, and required. With ``compressed=True`` it is the largest
        length of a projected row, ``Bounds(x=..., norm="l2")``.
    radius : float, default=1.0
        The largest l1 norm of the coefficients. Public.
    dimension : int or "auto", default="auto"
        The number of dimensions that rows are projected to. "auto" follows from public facts.
    projection : str, Projection or array-like, default="gaussian"
        "gaussian", "sparse-sign", "structured" (which stores no matrix), a `Projection`, or the
        matrix itself, with one column for each column of the data.
    compressed : bool, default=False
        Whether `X` holds rows that are already projected, by the matrix that is given.
    clip : float or "auto", default="auto"
        The largest length of a projected row; longer ones are shortened.
    seed : int, default=0
        The public seed of the matrix.
    solver : str or Solver, default="auto"
        The solver in the projected space: "noisy-gradient", "objective-perturbation",
        "posterior-sampling", or a solver object.
    steps : int or "auto", default="auto"
    fit_intercept : bool, default=True
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
    ledger : Ledger, optional
    engine : {"auto", "local", "numba", "numpy", "scan", "disk", "dask"}, default="auto"
    random_state : int, optional
        Makes the fit reproducible, for tests. Such a model is marked as not private.
    verbose : bool, default=False

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        For rows before the projection.
    intercept_ : float
    n_iter_ : int
    privacy_ : Statement

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

    epsilon: float
    delta: float | None = None
    _: KW_ONLY
    bounds: Bounds | None = None
    radius: float = 1.0
    dimension: int | str = "auto"
    projection: Any = "gaussian"
    compressed: bool = False
    clip: float | str = "auto"
    seed: int = 0
    solver: str | Solver = "auto"
    steps: int | str = "auto"
    fit_intercept: bool = True
    adjacency: str = "replace-one"
    ledger: Ledger | None = None
    engine: str = "auto"
    random_state: Any = None
    verbose: bool = False


@dataclass(eq=False, repr=False)
class ProjectedClassifier(ProjectedModel, LogisticClassifier):
    """Logistic regression behind a random projection, with differential privacy.

    Minimises the mean logistic loss over the image of an l1 ball, then takes the smallest
    coefficients in the l1 norm that have this image.

    Parameters
    ----------
    epsilon : float
        The privacy budget of all classes together.
    delta : float, optional
        The probability with which epsilon may fail. 0 asks for pure differential privacy. If it
        is not given it is the smaller of 1e-6 and a tenth of 1 / n_rows.
    bounds : Bounds
        How far a row may reach: public, and required. With ``compressed=True`` it is the largest
        length of a projected row, ``Bounds(x=..., norm="l2")``. A bound on y is
        not needed.
    classes : array-like, or "observed"
        The labels: public, as for `PrivateLogisticRegression`.
    radius : float, default=10.0
        The largest l1 norm of the coefficients. Public.
    dimension : int or "auto", default="auto"
        The number of dimensions that rows are projected to. "auto" follows from public facts.
    projection : str, Projection or array-like, default="gaussian"
        "gaussian", "sparse-sign", "structured" (which stores no matrix), a `Projection`, or the
        matrix itself, with one column for each column of the data.
    compressed : bool, default=False
        Whether `X` holds rows that are already projected, by the matrix that is given.
    clip : float or "auto", default="auto"
        The largest length of a projected row; longer ones are shortened.
    seed : int, default=0
        The public seed of the matrix.
    solver : str or Solver, default="auto"
        The solver in the projected space: "noisy-gradient", "objective-perturbation",
        "posterior-sampling", or a solver object.
    steps : int or "auto", default="auto"
    fit_intercept : bool, default=True
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
    ledger : Ledger, optional
    engine : {"auto", "local", "numba", "numpy", "scan", "disk", "dask"}, default="auto"
    random_state : int, optional
        Makes the fit reproducible, for tests. Such a model is marked as not private.
    verbose : bool, default=False

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        For rows before the projection.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    n_iter_ : int
    privacy_ : Statement

    Notes
    -----
    *Privacy.* As for `PrivateLasso`; see `riata.solvers.Projected`.
    """

    epsilon: float
    delta: float | None = None
    _: KW_ONLY
    bounds: Bounds | None = None
    classes: Any = None
    radius: float = 10.0
    dimension: int | str = "auto"
    projection: Any = "gaussian"
    compressed: bool = False
    clip: float | str = "auto"
    seed: int = 0
    solver: str | Solver = "auto"
    steps: int | str = "auto"
    fit_intercept: bool = True
    adjacency: str = "replace-one"
    ledger: Ledger | None = None
    engine: str = "auto"
    random_state: Any = None
    verbose: bool = False
