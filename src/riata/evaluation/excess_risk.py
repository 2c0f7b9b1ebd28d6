"""Equation (1) of Talwar, Thakurta and Zhang: how much more a model costs than the best one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from riata.errors import InvalidArgument
from riata.local.paper.constrained import Multiple, minimize_over
from riata.losses import Loss
from riata.sets import ConstraintSet


def excess_risk(coef: Any, X: Any, y: Any, loss: Loss, constraint: ConstraintSet) -> float:
    """The mean loss of a model minus the smallest one over a set. NOT PRIVATE.

    R(theta; D) of the paper. Its mean over fits is the privacy risk of a solver on these rows, and
    `Plan.excess_risk` bounds that for all rows inside the bounds.

    Parameters
    ----------
    coef : array-like of shape (n_features,)
        Without an intercept.
    X : array-like of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
    loss : Loss
        Of margins, with a bounded curvature.
    constraint : ConstraintSet
        Convex.
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    curvature = loss.curvature_bound(float(np.abs(y).max()))
    if curvature == math.inf or loss.gradient_bounds is not None:
        raise InvalidArgument(
            f"The smallest risk of the {loss.name} loss is not found here, which needs margins and "
            "a bounded curvature. Use Smoothed(loss, width) for a loss with a corner."
        )
    C = constraint.sized(X.shape[1])

    def risk(theta: np.ndarray) -> float:
        return float(np.mean(loss.value(X @ theta, y)))

    def gradient(theta: np.ndarray) -> np.ndarray:
        return np.asarray(X.T @ loss.slope(X @ theta, y)) / len(y)

    if curvature == 0:
        best = C.minimiser(gradient(np.zeros(X.shape[1]))).dense()
    else:
        steepest = curvature * float(np.linalg.norm(X, 2)) ** 2 / len(y)
        best = minimize_over(gradient, steepest, Multiple(C), X.shape[1])
    return risk(np.asarray(coef, dtype=np.float64)) - risk(best)
