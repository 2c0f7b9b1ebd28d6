"""How far candidate rows are apart in the releases of a run that has been seen.

What a row adds to a sum does not depend on the other rows, so one run says of all pairs of rows at
once what exchanging one for the other would have changed. In float64: for searches, not verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from riata.audit.witness import WitnessedRelease
from riata.engines import LocalEngine
from riata.mechanisms import Exact, LaplaceMechanism, PosteriorSample, PublicAnswer
from riata.privacy.accountants import spent
from riata.privacy.budget import CHANGED_CONTRIBUTIONS
from riata.privacy.events import Event
from riata.queries import Minimum, SquaredMoments
from riata.solvers import Plan


def realised_by_pairs(
    runs: Iterable[list[WitnessedRelease]], plan: Plan, rows: list[LocalEngine]
) -> Any:
    """The privacy loss that each pair of rows realises over the runs, up to one factor: a matrix.

    Each engine holds one candidate row, and possibly one that holds none.
    """
    pure = plan.budget.delta == 0

    @cache
    def weight(event: Event) -> float:
        cost = spent(event, plan.budget.delta).epsilon
        return cost if pure else cost**2

    total = np.zeros((len(rows), len(rows)))
    for run in runs:
        for release in run:
            if release.part == 0 and not isinstance(release.mechanism, Exact | PublicAnswer):
                ratios = _ratios(release, np.array([row.total(release.query) for row in rows]))
                total += weight(release.mechanism.event) * (ratios if pure else ratios**2)
    return total


def _ratios(release: WitnessedRelease, sums: np.ndarray) -> np.ndarray:
    """For each pair, the change of a release over the one that its noise is scaled to."""
    query, mechanism = release.query, release.mechanism
    match release.asked:
        case Minimum() as asked:
            answers = np.array([query.from_total(s)[: asked.size] for s in sums])
            return cdist(answers, answers) / asked.sensitivity("l2")
        case SquaredMoments() as asked if isinstance(mechanism, PosteriorSample):
            # the largest change of a loss is about the change of the moments
            answers = np.array([query.from_total(s).ravel() for s in sums]) * query.n_rows
            changed = CHANGED_CONTRIBUTIONS[query.adjacency]
            return cdist(answers, answers) / (changed * asked.loss_bound)
    if mechanism.norm != "linf":
        answers = sums * np.broadcast_to(query.unit, sums.shape[1:])
        metric = "cityblock" if isinstance(mechanism, LaplaceMechanism) else "euclidean"
        sensitivity = mechanism.sensitivity(query)
        assert sensitivity is not None
        return cdist(answers, answers, metric) / sensitivity
    answers = np.array([query.from_total(s) for s in sums])
    if query.symmetric:
        return cdist(answers, answers, "chebyshev") / query.sensitivity("linf")
    widths = [np.ptp(answers - each, axis=1) for each in answers]
    return np.array(widths) / (2 * query.sensitivity("linf"))
