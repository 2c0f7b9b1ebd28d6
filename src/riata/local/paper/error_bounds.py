"""Lemmas 3 and 6, Corollary 1 and Theorems 2 and 3 of the paper, with constants.

Each bound holds with high probability. The proofs are in docs/algorithms/local_paper.md.
"""

from __future__ import annotations

import math

from riata.embedding import lift_error, margin_distortion
from riata.local.paper.private_vector import PrivateVector


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


__all__ = ["mean_deviation", "mean_error", "moment_errors", "projected_risk", "projection_risk"]
