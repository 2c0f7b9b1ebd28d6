"""How much likelier a release was on one data set than on its neighbour."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax

from riata.audit.witness import Seen
from riata.mechanisms import (
    ExponentialMechanism,
    GaussianMechanism,
    GaussianObjective,
    LaplaceMechanism,
    ObjectivePerturbation,
    PosteriorSample,
    SampledGaussianMechanism,
    TopK,
)
from riata.mechanisms.selection import listed
from riata.queries import Minimum


def log_ratio(seen: Seen) -> float:
    """How much more likely the release was on the data than on the neighbour.

    Any number here makes a valid audit; the true log-ratio makes the strongest one.
    """
    query, released = seen.query, seen.released
    match seen.mechanism:
        case ExponentialMechanism(epsilon):
            scale = 2 * query.sensitivity("linf") / epsilon
            ours, theirs = (
                log_softmax(_candidates(seen, total) / scale) for total in (seen.ours, seen.theirs)
            )
            return float(ours[released] - theirs[released])
        case TopK(epsilon):
            ours, theirs = (np.abs(query.from_total(total)) for total in (seen.ours, seen.theirs))
            gain = (ours - theirs) * epsilon / (2 * query.sensitivity("linf"))
            return float(gain[released].sum() - len(released) * gain.mean())
        case ObjectivePerturbation():
            return _objective_log_ratio(seen, seen.mechanism)
        case PosteriorSample():
            change = query.from_total(seen.theirs - seen.ours)
            point = np.append(released, -1.0)
            return float(point @ change @ point)
        case SampledGaussianMechanism():
            change = query.from_total(seen.ours - seen.theirs)
            return float((released - query.from_total(seen.theirs)) @ change)
        case GaussianMechanism() | LaplaceMechanism():
            power = 2 if isinstance(seen.mechanism, GaussianMechanism) else 1
            # Noise of one scale for every number, before `from_total` multiplies some of them.
            unit = np.broadcast_to(query.unit, seen.ours.shape)
            scales = seen.mechanism.scale(query) * _numbers(query.from_total(1 / unit))
            ours, theirs = (
                np.abs(_numbers(released - query.from_total(total)) / scales) ** power / power
                for total in (seen.ours, seen.theirs)
            )
            return float(theirs.sum() - ours.sum())
    ours, theirs = (_candidates(seen, total) for total in (seen.ours, seen.theirs))
    change = ours - theirs
    return float(change[released] - change.mean())


def _numbers(answer: np.ndarray) -> np.ndarray:
    """The numbers that a release consists of: of a symmetric matrix, its upper triangle."""
    return answer[np.triu_indices(len(answer))] if np.ndim(answer) == 2 else answer


def _objective_log_ratio(seen: Seen, mechanism: ObjectivePerturbation) -> float:
    """The log-ratio of the two linear terms that lead to the released point, without Jacobians."""
    asked, theta = seen.asked, seen.released
    assert isinstance(asked, Minimum)
    point = np.append(theta.dense(), theta.offset)[: asked.size]
    pulls = (seen.query.from_total(total)[: asked.size] for total in (seen.ours, seen.theirs))
    lengths = [
        np.linalg.norm(pull + mechanism.regularisation * point) / mechanism.scale(asked)
        for pull in pulls
    ]
    power = 2 if isinstance(mechanism, GaussianObjective) else 1
    return float((lengths[1] ** power - lengths[0] ** power) / power)


def _candidates(seen: Seen, total: np.ndarray) -> np.ndarray:
    return listed(seen.query.from_total(total), seen.query.symmetric)
