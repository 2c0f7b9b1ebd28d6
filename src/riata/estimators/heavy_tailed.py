"""Sparse regression for rows without a natural bound."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

from riata.arguments import is_auto
from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.estimators.parameters import documented
from riata.estimators.regressor import PrivateRegressor
from riata.fitting import Fitted
from riata.privacy.budget import check_scale
from riata.sets import ConstraintSet, SparseBall
from riata.solvers import PrivatePeeling, Solver

#: The step of "peeling" in units of 1 / scale^2: it halves the distance to the optimum for entries
#: of the usual size. One that follows from K, which few entries come near, would hardly move.
STEP = 0.25


@documented
@dataclass(eq=False, repr=False)
class HeavyTailedRegression(PrivateRegressor):
    """Linear regression on few columns whose entries have heavy tails, with differential privacy.

    Entries of x and y are truncated at K, which grows with the number of rows: rare huge values
    then cost a little bias and no privacy. The rest is peeling, as in `PrivateSparseRegression`.

    Parameters
    ----------
    $epsilon
    scale : float, default=1.0
        The usual size of an entry of x and of y, such as a standard deviation known from elsewhere.
        Public.
    truncation : float or "auto", default="auto"
        K, where entries are clipped. "auto" is scale * (n epsilon / (s log p))^(1/4), at least
        scale: the order that suits four finite moments.
    $sparsity
    solver : str or Solver, default="peeling"
        "peeling" reads all rows in each step or a part of its own, whichever has less noise, and
        follows the gradient by 1 / (4 scale^2). ``PrivatePeeling(split=True, step_size=...)``
        always splits.
    $options

    Attributes
    ----------
    $coefficients
    truncation_ : float
        K.
    $fitted

    Notes
    -----
    *Privacy.* As for `PrivateLasso`. K follows from public facts alone.

    *Differences from the paper.* See `riata.solvers.PrivatePeeling`.

    Examples
    --------
    >>> import numpy as np
    >>> from riata import HeavyTailedRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_t(5, (20_000, 50))
    >>> y = 0.5 * X[:, 3] - 0.5 * X[:, 7] + rng.standard_t(5, 20_000)
    >>> model = HeavyTailedRegression(4.0, sparsity=2).fit(X, y)
    >>> model.truncation_
    10.056...
    """

    epsilon: float
    delta: float | None = None
    _: KW_ONLY
    scale: float = 1.0
    truncation: float | str = "auto"
    sparsity: int = 10
    radius: float = 1.0
    solver: str | Solver = "peeling"

    def _set(self, bounds: Bounds) -> ConstraintSet:
        return SparseBall(self.sparsity, self.radius)

    def _solver(self) -> tuple[str | Solver, int | str]:
        if isinstance(self.solver, str) and self.solver == PrivatePeeling.name:
            return PrivatePeeling(self.steps, STEP / float(self.scale) ** 2), "auto"
        return super()._solver()

    def check_parameters(self) -> None:
        super().check_parameters()
        check_scale("scale", self.scale, "it is the usual size of an entry.")
        if not is_auto(self.truncation):
            check_scale("truncation", self.truncation, "entries are clipped there.")
        elif math.isinf(self.epsilon):
            raise InvalidArgument(
                'truncation="auto" follows from epsilon, and epsilon is infinite. Pass a number.'
            )

    def row_bounds(self) -> Bounds:
        """Where entries were clipped, or will be if that is known."""
        given: Any = self.scale if is_auto(self.truncation) else self.truncation
        truncation = getattr(self, "truncation_", given)
        return Bounds(x=truncation, y=truncation)

    def _bounds_for(self, n_rows: int, n_features: int, n_classes: int) -> Bounds:
        truncation: Any = self.truncation
        if is_auto(self.truncation):
            SparseBall(self.sparsity, self.radius)  # checks them
            room = self.sparsity * math.log(max(n_features, 3))
            truncation = self.scale * max(1.0, (n_rows * self.epsilon / room) ** 0.25)
        return Bounds(x=truncation, y=truncation)

    def _set_attributes(self, fitted: Fitted) -> None:
        super()._set_attributes(fitted)
        self.truncation_ = fitted.planned.request.bounds.x
