"""Lemma 7 and the second half of Corollary 2: predictions with features, and with the kernel.

The proofs are in docs/algorithms/local_paper.md.
"""

from __future__ import annotations

import math

from riata.arguments import check_positive, check_whole
from riata.embedding import finite_size
from riata.privacy.budget import check_open_unit


def feature_distortion(n_components: int, points: int, failure: float) -> float:
    """How far inner products of random features are from the kernel, on all pairs of some points.

    That is gamma of Lemma 7, exceeded with probability `failure` at most, for points that are fixed
    before the features are drawn.

    Parameters
    ----------
    n_components : int
        Cosines and sines together.
    points : int
    failure : float
        Between 0 and 1.
    """
    features = check_whole("n_components", n_components, "a device sends so many", 2)
    points = check_whole("points", points, "the kernel is compared on pairs of them", 2)
    both = points * (points - 1)  # pairs, above and below
    rare = math.log(both / check_open_unit("failure", failure))
    return math.sqrt(4 * rare / features)


def kernel_distance(
    distortion: float,
    dual_norm: float,
    C: float = 1.0,
    lipschitz: float | None = None,
    excess: float = 0.0,
) -> float:
    """The largest difference of predictions with random features and with the kernel (Lemma 7).

    For kernels and features whose inner product of a point with itself is at most 1.

    Parameters
    ----------
    distortion : float
        gamma: how far inner products of features are from the kernel.
    dual_norm : float
        r: the largest l1 norm of the dual variables. For targets in [-1, 1] it is at most C.
    C : float, default=1.0
        The weight of the loss against the ridge, formulas (6) and (7).
    lipschitz : float, optional
        G, of half the squared loss; ``dual_norm + 1`` if left out, which is right for targets in
        [-1, 1].
    excess : float, default=0.0
        By how much the objective of formula (7) exceeds its minimum at the model whose
        predictions are meant.
    """
    why = "it is a part of a bound"
    gamma, excess = finite_size("distortion", distortion), finite_size("excess", excess)
    r, C = check_positive("dual_norm", dual_norm, why), check_positive("C", C, why)
    G = r + 1 if lipschitz is None else check_positive("lipschitz", lipschitz, why)
    apart = 2 * math.sqrt((C * G + r / 2) * r * gamma)
    return r * gamma + apart + math.sqrt(2 * excess)


__all__ = ["feature_distortion", "kernel_distance"]
