"""Lemmas 3, 6 and 7, Corollaries 1 and 2 and Theorems 2 and 3 of the paper, with constants.

Each bound holds with high probability. The proofs are in docs/algorithms/local_paper.md.
"""

from __future__ import annotations

import math

from riata.arguments import check_positive, check_whole
from riata.embedding import finite_size, lift_error, margin_distortion
from riata.local.paper.private_vector import PrivateVector
from riata.privacy.budget import check_open_unit


def mean_deviation(vector: PrivateVector, people: float, dimension: int, failure: float) -> float:
    """How far, in l1, the mean of so many reports is from its expectation (Lemma 3).

    Parameters
    ----------
    vector : PrivateVector
    people : float
    dimension : int
    failure : float
        Between 0 and 1.
    """
    t = math.log(2 / failure)
    noise = dimension * math.sqrt(2 / math.pi) + math.sqrt(2 * dimension * t)
    drawn = math.sqrt(dimension) * vector.reach * (1 + math.sqrt(2 * t))
    return (math.sqrt(vector.variance) * noise + drawn) / math.sqrt(people)


def mean_error(dimension: int, width: float, radius: float, slack: float, failure: float) -> float:
    """The distance of the recovered mean from the true one (Lemma 5, Theorem 2).

    Parameters
    ----------
    dimension : int
    width, radius : float
        Of the set that holds the mean: its Gaussian width and its largest length.
    slack : float
        The tolerance of program (1), which the true mean keeps.
    failure : float
    """
    rare = math.sqrt(2 * math.log(1 / failure))
    near = math.sqrt(math.pi / 2) * (8 * width + 2 * radius * rare + 2 * slack)
    known = lift_error(dimension, width, radius, failure, missed=2 * slack)
    return min(known, near / math.sqrt(dimension))


def moment_errors(
    vector: PrivateVector, target: PrivateVector, people: int, dimension: int, failure: float
) -> tuple[float, float]:
    """How far the mean of x x' without its noise, and that of y x, are off in the spectral norm.

    Before eigenvalues are raised, which at most doubles the former.

    Parameters
    ----------
    vector, target : PrivateVector
        How a row and a target are sent.
    people, dimension : int
    failure : float
    """
    t = math.sqrt(2 * math.log(7 / failure))
    root = (math.sqrt(dimension) + t) / math.sqrt(people)
    both = (2 * math.sqrt(dimension) + t) / math.sqrt(people)
    x, y = math.sqrt(vector.variance), math.sqrt(target.variance)
    gram = 2 * vector.reach * x * both + x**2 * (2 * root + root**2)
    longest = 1 + t / math.sqrt(people)  # of the noise of all targets, over its mean
    return gram, vector.reach * y * root + x * root * (1 + y * longest)


def projected_risk(
    vector: PrivateVector,
    target: PrivateVector,
    people: int,
    dimension: int,
    radius: float,
    failure: float,
) -> float:
    """The excess of the projected loss of Algorithm 3 over its minimum (Lemma 6).

    Parameters
    ----------
    vector, target : PrivateVector
        How a projected row and a target are sent.
    people, dimension : int
    radius : float
        The largest length of a projected point of the set.
    failure : float
    """
    gram, cross = moment_errors(vector, target, people, dimension, failure)
    return 2 * (radius**2 * gram + radius * cross)


def projection_risk(
    dimension: int, width: float, radius: float, people: int, failure: float
) -> float:
    """What a projection adds to the excess of the loss, for margins in [-1, 1] (Theorem 3).

    Parameters
    ----------
    dimension : int
    width, radius : float
        Of the set: its Gaussian width and its largest length.
    people : int
    failure : float
    """
    moved = margin_distortion(dimension, width, radius, people, failure)
    return 2 * moved * (2 + moved / 2)


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
