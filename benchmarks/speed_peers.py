"""What riata's speed is compared with.

The Frank-Wolfe loops are generators that make one step each time they are asked, and tell which
vertex they chose: a step costs the same from the first to the last, so a few can be timed. All of
them get the noise of the same plan.
"""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba import njit
from scipy import sparse
from scipy.special import expit

from speed_data import RADIUS, one_pass

Slope = Callable[[np.ndarray, np.ndarray], np.ndarray]


def optimised_loop(
    x: sparse.csc_array, y: np.ndarray, slope: Slope, sharpness: float
) -> Iterator[int]:
    """A loop with the compiled pass, and margins that are changed where the chosen column is.

    The margins are `scale * kept`. One Gumbel variable a column: the sign is drawn after it, from
    the larger of the two weights alone, which is a little wrong and saves half of the noise.
    """
    rng = np.random.default_rng(6)
    n, p = x.shape
    kept, scale, t = np.zeros(n), 1.0, 0
    while True:
        t += 1
        utility = one_pass(x, slope(scale * kept, y))
        utility *= -RADIUS * sharpness / n
        noisy = rng.gumbel(size=p)
        noisy += np.abs(utility)
        j = int(np.argmax(noisy))
        sign = 1.0 if rng.random() < expit(2 * utility[j]) else -1.0
        mu = 2 / (t + 2)
        scale *= 1 - mu
        _add_column(x.indptr, x.indices, x.data, j, sign * RADIUS * mu / scale, kept)
        yield j if sign > 0 else p + j


@njit(cache=True)
def _add_column(starts, rows, values, j, factor, out):
    for k in range(starts[j], starts[j + 1]):
        out[rows[k]] += factor * values[k]


def plain_loop(x: Any, y: np.ndarray, slope: Slope, sharpness: float) -> Iterator[int]:
    """NumPy and SciPy, with vertices that are not written down."""
    rng = np.random.default_rng(6)
    n, p = x.shape
    theta, t = np.zeros(p), 0
    while True:
        t += 1
        gradient = x.T @ slope(x @ theta, y) / n
        scores = sharpness * RADIUS * np.concatenate([-gradient, gradient])
        chosen = int(np.argmax(scores + rng.gumbel(size=2 * p)))
        theta *= t / (t + 2)
        theta[chosen % p] += 2 / (t + 2) * RADIUS * (1 if chosen < p else -1)
        yield chosen


def textbook_loop(
    x: Any, y: np.ndarray, slope: Slope, sharpness: float, vertices: Any
) -> Iterator[int]:
    """The algorithm as surveys print it: a list of vertices and Laplace noise for each."""
    rng = np.random.default_rng(6)
    n, p = x.shape
    theta, t = np.zeros(p), 0
    while True:
        t += 1
        gradient = x.T @ slope(x @ theta, y) / n
        scores = vertices @ gradient + rng.laplace(scale=1 / sharpness, size=2 * p)
        chosen = int(np.argmin(scores))
        vertex = vertices[[chosen]]
        vertex = np.ravel(vertex.toarray() if sparse.issparse(vertex) else vertex)
        theta = theta + 2 / (t + 2) * (vertex - theta)
        yield chosen


#: The largest list of vertices that is written down as a dense matrix, in bytes.
MOST_DENSE = 2 * 2**30


def all_vertices(p: int) -> tuple[Any, str]:
    """All 2p vertices of the ball, and whether their matrix is dense or sparse."""
    if 2 * p * p * 8 <= MOST_DENSE:
        return RADIUS * np.vstack([np.eye(p), -np.eye(p)]), "dense"
    half = RADIUS * sparse.eye_array(p, format="csr")
    return sparse.vstack([half, -half], format="csr"), "sparse"


def lasso_solvers() -> dict[str, Callable[[float], Any]]:
    """Solvers of the LASSO without privacy, by their names, as functions of alpha."""
    import celer
    import skglm
    from sklearn.linear_model import Lasso

    return {
        "scikit-learn Lasso": lambda alpha: Lasso(alpha, fit_intercept=False),
        "celer Lasso": lambda alpha: celer.Lasso(alpha, fit_intercept=False),
        "skglm Lasso": lambda alpha: skglm.Lasso(alpha, fit_intercept=False),
    }


def alpha_of_norm(x: Any, y: np.ndarray, norm: float) -> float:
    """The penalty whose solution has about this l1 norm, by bisection."""
    fit = lasso_solvers()["celer Lasso"]
    high = float(np.abs(x.T @ y).max() / len(y))
    low = high / 1e4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while high / low > 1.02:
            alpha = (low * high) ** 0.5
            found = float(np.abs(fit(alpha).fit(x, y).coef_).sum())
            if abs(found / norm - 1) < 0.02:
                return alpha
            low, high = (alpha, high) if found > norm else (low, alpha)
    return high


def diffprivlib_models() -> Any:
    """diffprivlib's models, also with versions of scikit-learn that it does not know.

    Its forests cannot be imported then, and its logistic regression passes on an argument that is
    no more. Neither touches what is measured.
    """
    from sklearn.linear_model import LogisticRegression

    try:
        import diffprivlib.models
    except ImportError:
        for name in [name for name in sys.modules if name.startswith("diffprivlib")]:
            del sys.modules[name]
        forests = types.ModuleType("diffprivlib.models.forest")
        forests.RandomForestClassifier = forests.DecisionTreeClassifier = None
        sys.modules[forests.__name__] = forests
        import diffprivlib.models

        original = LogisticRegression.__init__

        def without_multi_class(self, *args, multi_class=None, **keywords):
            original(self, *args, **keywords)

        LogisticRegression.__init__ = without_multi_class
    return diffprivlib.models
