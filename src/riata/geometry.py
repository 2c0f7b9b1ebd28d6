"""The constants of Talwar, Thakurta and Zhang's bounds, by name: norms, widths and curvature.

What sets know themselves is in `riata.sets`: `minkowski_norm`, `dual_norm`, `gaussian_width`. The
proofs are in docs/algorithms/geometry.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.special import log_ndtr

from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.privacy.budget import check_number
from riata.problem import Problem
from riata.public import public_normals
from riata.row_norms import NORMS, conjugate, embedding_norm
from riata.sets import ConstraintSet, L1Ball, Polytope, Simplex, Width
from riata.sets.lp import LpGeometry


def set_norm(constraint: ConstraintSet, q: float) -> float:
    """||C||_q: the largest l_q norm of a point of C.

    Parameters
    ----------
    constraint : ConstraintSet
        With a dimension.
    q : float
        At least 1, infinity included.
    """
    order = _order(q)
    if type(constraint).size_in is ConstraintSet.size_in and order not in (1, 2, math.inf):
        raise InvalidArgument(
            f"The l_q norms of {constraint!r} are not known. Use `constraint.size_in`, a bound, or "
            '`constraint.radius_in`, which has those in "l1", "l2" and "linf".'
        )
    return constraint.size_in(order)


def row_norm(bounds: Bounds, r: float, n_features: int) -> float:
    """The largest l_r norm of a row inside the bounds.

    Parameters
    ----------
    bounds : Bounds
    r : float
        At least 1, infinity included.
    n_features : int
    """
    order = _order(r)
    if bounds.norm not in NORMS:
        return float(bounds.x * embedding_norm(n_features, bounds.order, order))
    most = float(np.linalg.norm(bounds.per_column(n_features), order))
    if bounds.max_length is None:
        return most
    return min(most, bounds.max_length * embedding_norm(n_features, 2.0, order))


def smoothness(problem: Problem, q: float) -> float:
    """lambda of Remark 1: the largest ||H v||_r over ||v||_q = 1, for every Hessian H of the risk.

    r is conjugate to q. A row x has the Hessian c x x', whose lambda is c ||x||_r^2.
    """
    longest = row_norm(problem.bounds, conjugate(_order(q)), problem.n_features)
    return problem.loss.curvature_bound(problem.y_bound) * longest**2


def smoothness_curvature(problem: Problem, q: float) -> float:
    """The bound of Remark 1 on the curvature constant, 4 lambda ||C||_q^2.

    The remark prints lambda ||C||_q^2, which is too small by the factor 4 unless ||C||_q is the
    diameter. `Problem.curvature` is never larger.
    """
    return 4 * smoothness(problem, q) * set_norm(problem.set, q) ** 2


def curvature_of_data(x: Any, constraint: ConstraintSet) -> float:
    """Remark 2 for the mean squared loss on given rows: a bound on its curvature. NOT PRIVATE.

    2 max ||A (a - b)||^2 with A = x / sqrt(n), over vertices where the set has them. The remark
    prints half of it.

    Parameters
    ----------
    x : array-like of shape (n_rows, n_features)
    constraint : L1Ball, Simplex, Polytope or L2Ball
        Of the right dimension.
    """
    a = np.asarray(x, dtype=np.float64) / math.sqrt(len(x))
    if isinstance(constraint, L1Ball):
        return float(8 * constraint.radius**2 * np.square(a).sum(axis=0).max())
    images = None
    if isinstance(constraint, Simplex):
        images = constraint.radius * a
    elif isinstance(constraint, Polytope):
        images = a @ constraint.vertices.T
    if images is not None:
        squares = np.square(images).sum(axis=0)
        return float(2 * (squares[:, None] + squares - 2 * images.T @ images).max())
    if isinstance(constraint, LpGeometry) and constraint.p == 2:
        return float(8 * constraint.radius**2 * np.linalg.norm(a, 2) ** 2)
    raise InvalidArgument(
        f"The largest ||A(a - b)|| over {constraint!r} is hard to compute. Use L1Ball, Simplex, "
        "Polytope or L2Ball, or `smoothness_curvature`, which bounds it."
    )


def mutual_incoherence(x: Any) -> float:
    """The largest |cosine| between two columns. NOT PRIVATE.

    Parameters
    ----------
    x : array-like of shape (n_rows, n_features)
        At least two columns, none of them 0.
    """
    gram = _cosines(x)
    np.fill_diagonal(gram, 0.0)
    return float(np.abs(gram).max())


def restricted_strong_convexity(x: Any, sparsity: int) -> float:
    """A lower bound on ||x v||^2 / (n ||v||^2) over all v with so many non-zeros. NOT PRIVATE.

    The least mean square of a column times 1 - (sparsity - 1) * incoherence, by Gershgorin's
    theorem for columns of length 1; 0 if that is negative. The exact constant is NP-hard.

    Parameters
    ----------
    x : array-like of shape (n_rows, n_features)
    sparsity : int
    """
    if not check_number("sparsity", sparsity) >= 1:
        raise InvalidArgument(f"sparsity={sparsity!r} must be at least 1.")
    least = float(np.square(np.asarray(x, dtype=np.float64)).mean(axis=0).min())
    return least * max(0.0, 1 - (sparsity - 1) * mutual_incoherence(x))


def one_sided_width(constraint: ConstraintSet, draws: int = 400) -> Width:
    """E sup <g, w> over w in C: the Gaussian width of the lecture and of Kasiviswanathan and Jin.

    `ConstraintSet.gaussian_width` is E sup |<g, w>|, that of Talwar, Thakurta and Zhang. They are
    the same for symmetric sets. For others this one is smaller, and does not see where the set is.

    Parameters
    ----------
    constraint : ConstraintSet
    draws : int, default=400
        Of public normal vectors, where there is no closed form.
    """
    size = constraint.required_size()
    if isinstance(constraint, Simplex):
        return Width(constraint.radius * _expected_largest(size), 0.0)
    if not isinstance(constraint, Polytope):
        return constraint.gaussian_width(draws)
    label = f"riata one-sided gaussian width {size}"
    tops = [
        float((constraint.vertices @ public_normals((size,), f"{label} {i}")).max())
        for i in range(draws)
    ]
    return Width(float(np.mean(tops)), float(np.std(tops, ddof=1) / math.sqrt(draws)))


def _expected_largest(n: int) -> float:
    """E max g_j of n standard normals."""
    top = math.sqrt(2 * math.log(max(n, 2))) + 12.0
    above = quad(lambda t: -math.expm1(n * float(log_ndtr(t))), 0.0, top, limit=200)[0]
    below = quad(lambda t: math.exp(n * float(log_ndtr(-t))), 0.0, 40.0, limit=200)[0]
    return float(above - below)


def _cosines(x: Any) -> np.ndarray:
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 2 or x.shape[1] < 2:
        raise InvalidArgument(f"x has shape {x.shape}: it must have two columns or more.")
    lengths = np.sqrt(np.square(x).sum(axis=0))
    if not lengths.min() > 0:
        raise InvalidArgument("A column of x is 0 and has no direction. Leave it out.")
    x = x / lengths
    return np.asarray(x.T @ x)


def _order(q: float) -> float:
    order = check_number("q", q)
    if not order >= 1:
        raise InvalidArgument(f"q={q!r} must be at least 1: below it there is no norm.")
    return order


__all__ = [
    "curvature_of_data",
    "mutual_incoherence",
    "one_sided_width",
    "restricted_strong_convexity",
    "row_norm",
    "set_norm",
    "smoothness",
    "smoothness_curvature",
]
