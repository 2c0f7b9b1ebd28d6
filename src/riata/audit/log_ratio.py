"""How much likelier a release was on one data set than on its neighbour."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax

from riata.audit.witness import WitnessedRelease
from riata.mechanisms import (
    ExponentialMechanism,
    GaussianMechanism,
    GaussianObjective,
    LaplaceMechanism,
    ObjectivePerturbation,
    PosteriorSample,
    PublicAnswer,
    SampledGaussianMechanism,
    TopK,
)
from riata.mechanisms.selection import listed
from riata.queries import Minimum


def log_ratio(release: WitnessedRelease) -> float:
    """How much more likely the release was on the data than on the neighbour.

    Any number that follows from the release makes a valid audit, and the true log-ratio the
    strongest one. With the two sides exchanged it must change its sign and nothing else: a score
    that depended on the side it comes from would accuse every mechanism.
    """
    query, released = release.query, release.released
    match release.mechanism:
        case PublicAnswer():
            return 0.0
        case ExponentialMechanism(epsilon):
            scale = 2 * query.sensitivity("linf") / epsilon
            ours, theirs = (
                log_softmax(_candidates(release, total) / scale)
                for total in (release.ours, release.theirs)
            )
            return float(ours[released] - theirs[released])
        case TopK(epsilon):
            ours, theirs = (
                np.abs(query.from_total(total)) for total in (release.ours, release.theirs)
            )
            gain = (ours - theirs) * epsilon / (2 * query.sensitivity("linf"))
            return float(gain[released].sum() - len(released) * gain.mean())
        case ObjectivePerturbation():
            return _objective_log_ratio(release, release.mechanism)
        case PosteriorSample():
            change = query.from_total(release.theirs - release.ours)
            point = np.append(released, -1.0)
            return float(point @ change @ point)
        case SampledGaussianMechanism():
            ours, theirs = (query.from_total(total) for total in (release.ours, release.theirs))
            return float((released - (ours + theirs) / 2) @ (ours - theirs))
        case GaussianMechanism() | LaplaceMechanism():
            power = 2 if isinstance(release.mechanism, GaussianMechanism) else 1
            # Noise of one scale for every number, before `from_total` multiplies some of them.
            unit = np.broadcast_to(query.unit, release.ours.shape)
            scales = release.mechanism.scale(query) * _numbers(query.from_total(1 / unit))
            ours, theirs = (
                np.abs(_numbers(released - query.from_total(total)) / scales) ** power / power
                for total in (release.ours, release.theirs)
            )
            return float(theirs.sum() - ours.sum())
    ours, theirs = (_candidates(release, total) for total in (release.ours, release.theirs))
    change = ours - theirs
    return float(change[released] - change.mean())


def _numbers(answer: np.ndarray) -> np.ndarray:
    """The numbers that a release consists of: of a symmetric matrix, its upper triangle."""
    return answer[np.triu_indices(len(answer))] if np.ndim(answer) == 2 else answer


def _objective_log_ratio(release: WitnessedRelease, mechanism: ObjectivePerturbation) -> float:
    """The log-ratio of the two linear terms that lead to the released point, without Jacobians."""
    asked, theta = release.asked, release.released
    assert isinstance(asked, Minimum)
    point = np.append(theta.dense(), theta.offset)[: asked.size]
    pulls = (
        release.query.from_total(total)[: asked.size] for total in (release.ours, release.theirs)
    )
    lengths = [
        np.linalg.norm(pull + mechanism.regularisation * point) / mechanism.scale(asked)
        for pull in pulls
    ]
    power = 2 if isinstance(mechanism, GaussianObjective) else 1
    return float((lengths[1] ** power - lengths[0] ** power) / power)


def _candidates(release: WitnessedRelease, total: np.ndarray) -> np.ndarray:
    return listed(release.query.from_total(total), release.query.symmetric)
