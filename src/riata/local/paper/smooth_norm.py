"""Definition 2 and Proposition 1: how fast the derivatives of a function grow."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from riata.arguments import check_positive, check_whole
from riata.errors import InvalidArgument

#: Nodes on the interval, and on the circle around each of them.
_NODES, _AROUND = 2_000, 128


def smooth_norm(
    f: Callable[[np.ndarray], np.ndarray], k: int, r: float, circle: float = 1.0
) -> float:
    """The norm of the k-th derivative of f(r t) in Definition 2, computed.

    That is the integral of |u'(t)| / sqrt(1 - t^2) over [-1, 1], for u the k-th derivative. It
    bounds the error of the Chebyshev expansion of degree p by 2 / (pi k (p - k)^k) times itself
    (Trefethen 2008). Derivatives are integrals over circles in the complex plane.

    Parameters
    ----------
    f : callable
        Of an array of complex numbers, such as ``lambda m: np.log1p(np.exp(-m))``.
    k : int
    r : float
    circle : float, default=1.0
        f has no singularity at this distance from [-r, r], or nearer. As large as f allows is most
        accurate: derivatives of order j far below j! / circle^j are lost in rounding.
    """
    order = check_whole("k", k, "it counts derivatives", 0) + 1
    r = check_positive("r", r, "it is the largest margin")
    circle = check_positive("circle", circle, "it is the radius of circles around margins")
    t = r * np.cos((np.arange(_NODES) + 0.5) * np.pi / _NODES)
    turns = np.exp(2j * np.pi * np.arange(max(_AROUND, 4 * order)) / max(_AROUND, 4 * order))
    values = np.asarray(f(t[:, None] + circle * turns))
    if not np.isfinite(values).all():
        raise InvalidArgument(
            f"f is not finite at the distance {circle:g} from [-{r:g}, {r:g}]. Pass a smaller "
            "circle, on which the function has no singularity."
        )
    derivative = (values * turns**-order).mean(axis=1).real
    scale = math.exp(math.lgamma(order + 1) + order * math.log(r / circle))
    return math.pi * scale * float(np.abs(derivative).mean())


def smooth_norm_by_proposition_1(k: int, r: float) -> float:
    """mu_1(k; r) mu_2(k; r)^k of the logistic loss: r sqrt(4 k pi^3) (r k / e)^k."""
    k = check_whole("k", k, "it counts derivatives", 1)
    r = check_positive("r", r, "it is the largest margin")
    return r * math.sqrt(4 * k * math.pi**3) * (r * k / math.e) ** k
