"""Private logistic regression."""

from __future__ import annotations

from dataclasses import dataclass

from riata.estimators.classifier import BallClassifier, LogisticClassifier
from riata.estimators.parameters import documented


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateLogisticRegression(LogisticClassifier, BallClassifier):
    """Sparse logistic regression with differential privacy, for two classes or more.

    Minimises the mean logistic loss over a ball of coefficients. Three classes or more are fitted
    together by the solvers "joint-class-sums" and "softmax-gradient", which "auto" takes where it
    can: the noise then does not grow with their number. By other solvers each class is fitted
    against the rest; every row takes part in every fit, and the accountant composes them all.

    Parameters
    ----------
    $epsilon
    $bounds
    $classes
    calibration : bool or "auto", default="auto"
        Whether probabilities are calibrated after the fit, by a private fit of a line through the
        margins of each class, for a twentieth of the budget. "auto" does so unless epsilon is
        infinite, the solver projects the rows, or calibrates by itself, as "class-sums"
        and the solvers that fit all classes together do.
    $ball
    $solver
    $options

    Attributes
    ----------
    $class_coefficients
    calibration_ : ndarray of shape (1, 2) or (n_classes, 2)
        A slope and an intercept for each fit, which turn its margins into log-odds: (1, 0) where
        margins are used as they are.
    $fitted

    Notes
    -----
    *Privacy.* As for `PrivateLasso`. The classes are public. Counts of classes and the calibration
    are releases like any other: the budget is for all of them together.

    Examples
    --------
    >>> import numpy as np
    >>> from riata import Bounds, PrivateLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (20_000, 50))
    >>> y = X[:, 0] | X[:, 1]
    >>> model = PrivateLogisticRegression(epsilon=1.0, bounds=Bounds(x=1.0), classes=[0, 1])
    >>> model = model.fit(X, y)
    >>> model.predict(X[:2]).shape
    (2,)
    """

    curves = True

    calibration: bool | str = "auto"
