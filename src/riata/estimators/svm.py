"""A private linear support vector machine."""

from __future__ import annotations

from dataclasses import dataclass

from riata.estimators.classifier import BallClassifier
from riata.estimators.parameters import documented
from riata.losses import Loss, SmoothedHinge


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateLinearSVC(BallClassifier):
    """A linear support vector machine with differential privacy, for two classes or more.

    Minimises the mean hinge loss, its corner made quadratic, over a ball of coefficients. More than
    two classes are fitted one against the rest; every row takes part in every fit, and the
    accountant composes them all.

    Parameters
    ----------
    $epsilon
    $bounds
    $classes
    smoothing : float, default=1.0
        The length of the hinge's quadratic corner. Public.
    $ball
    $solver
    $options

    Attributes
    ----------
    $class_coefficients
    $fitted

    Notes
    -----
    *Privacy.* As for `PrivateLasso`. The classes are public. Counts of classes are releases like
    any other: the budget is for all of them together.

    Examples
    --------
    >>> import numpy as np
    >>> from riata import Bounds, PrivateLinearSVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (20_000, 50))
    >>> y = X[:, 0] | X[:, 1]
    >>> model = PrivateLinearSVC(epsilon=1.0, bounds=Bounds(x=1.0), classes=[0, 1])
    >>> model = model.fit(X, y)
    >>> model.predict(X[:2]).shape
    (2,)
    """

    curves = True

    smoothing: float = 1.0

    def _label_loss(self) -> Loss:
        return SmoothedHinge(self.smoothing)
