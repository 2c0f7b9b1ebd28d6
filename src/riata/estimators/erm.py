"""Losses and sets, composed freely: what the papers describe."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if

from riata.bounds import Bounds
from riata.errors import Incompatible, InvalidArgument
from riata.estimators.base import PrivateLinearModel
from riata.estimators.parameters import documented
from riata.fitting.prediction_rows import signs, targets_of
from riata.fitting.rows import Table, read_table
from riata.losses import Loss
from riata.sets import ConstraintSet


@documented
@dataclass(eq=False, repr=False)
class PrivateErm(PrivateLinearModel):
    """Private empirical risk minimisation: the mean of a loss over a constraint set.

    With a loss for numbers (`Squared`, `Huber`) it is a regressor. With a loss for labels
    (`Logistic`, `SmoothedHinge`) it is a classifier whose labels are -1 and 1; for a source they
    stand for the two classes of its schema, in their order. A `RowLoss` is a function of whole
    rows: `coef_` is its theta, and `predict` gives x . coef_.

    Parameters
    ----------
    loss : Loss
    set : ConstraintSet
    $epsilon
    $bounds
    solver : str or Solver, default="auto"
        A name from `riata.solvers.SOLVERS`, "auto", or a solver object. Not every solver fits
        every loss and set: the page "Choose" says which.
    $options

    Attributes
    ----------
    $coefficients
    $fitted

    Notes
    -----
    *Privacy.* As for `PrivateLasso`.

    Examples
    --------
    >>> import numpy as np
    >>> from riata import Bounds, PrivateErm
    >>> from riata.losses import Huber
    >>> from riata.sets import GroupL1Ball
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 12)) / np.sqrt(12)
    >>> y = X[:, :3] @ [0.5, 0.5, 0.5]
    >>> model = PrivateErm(
    ...     Huber(0.5), GroupL1Ball(3, 1.0), epsilon=1.0, delta=1e-6,
    ...     bounds=Bounds(x=1.0, y=1.0, norm="l2"), solver="gaussian-frank-wolfe",
    ... ).fit(X, y)
    >>> model.coef_.shape
    (12,)
    """

    loss: Loss
    set: ConstraintSet
    epsilon: float
    delta: float | None = None
    _: KW_ONLY
    bounds: Bounds | None = None

    def _set(self, bounds: Bounds) -> ConstraintSet:
        return self.set

    def _losses(self, classes: np.ndarray | None) -> tuple[Loss, ...]:
        return (self.loss,)

    def check_parameters(self) -> None:
        super().check_parameters()
        if not isinstance(self.loss, Loss):
            raise InvalidArgument(
                f"loss must be a Loss, got {type(self.loss).__name__}. "
                "Import one from riata.losses, such as Squared()."
            )
        if self.loss.n_margins > 1:
            raise InvalidArgument(
                f"PrivateErm fits one model, and the {self.loss.name} loss is of several classes. "
                "Use PrivateLogisticRegression."
            )
        if not isinstance(self.set, ConstraintSet):
            raise InvalidArgument(
                f"set must be a constraint set, got {type(self.set).__name__}. "
                "Import one from riata.sets, such as L1Ball(1.0)."
            )

    def row_bounds(self) -> Bounds:
        """The bounds that rows are clipped into: those of the schema, for rows of a source."""
        bounds = super().row_bounds()
        return bounds.with_y(1.0) if self.loss.classifies else bounds

    def _read(self, X: Any, y: Any) -> tuple[Table, None, Any]:
        table = read_table(self, X, y, classifies=self.loss.classifies, numeric=True)
        if table.encoded and len(self.schema_.classes) != 2:
            raise InvalidArgument(
                f"The schema has {len(self.schema_.classes)} classes, and PrivateErm tells two "
                "apart. Use PrivateLogisticRegression or PrivateLinearSVC."
            )
        centred = not self.loss.classifies and self._schema is not None
        if centred and self.loss.link != "identity" and self.schema_.target_centre != 0:
            raise Incompatible(
                f"the {self.loss.name} loss", "a target whose range is not symmetric around 0",
                because="a source moves the middle of the range to 0, and the loss would read "
                "other numbers than were meant",
                instead="Use an array, or a range of the target such as [-10, 10]",
            )  # fmt: skip
        return table, None, signs if table.encoded else None

    @available_if(lambda self: self.loss.classifies)
    def decision_function(self, X: Any) -> np.ndarray:
        """x . coef_ + intercept_ for each row, read as rows are in `fit`: for labels only."""
        return self._margins(X)

    def predict(self, X: Any) -> np.ndarray:
        """The predicted number, or the label -1 or 1."""
        return self.loss.predict(self._margins(X))

    def score(self, X: Any, y: Any = None) -> float:
        """R^2 of the predicted numbers, or the accuracy of the predicted labels.

        A source, or a frame of its schema, has its own targets.
        """
        from sklearn.metrics import accuracy_score, r2_score  # slow to import

        if y is None:
            y = targets_of(self, X)
            y = signs(y) if self.loss.classifies else y + self.schema_.target_centre
        measure = accuracy_score if self.loss.classifies else r2_score
        return float(measure(y, self.predict(X)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if getattr(self.loss, "classifies", False):
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(poor_score=True, multi_class=False)
        else:
            tags.estimator_type = "regressor"
            tags.regressor_tags = RegressorTags(poor_score=True)
        return tags
