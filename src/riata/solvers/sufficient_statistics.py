"""Noisy second moments of all columns, and Newton steps with them: for few columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from riata.privacy.events import Event
from riata.problem import Problem
from riata.solvers import defaults
from riata.solvers.refit import Refit, Run
from riata.solvers.requirements import columns_at_most

#: So many columns at most: the matrix of their second moments has half the square of it numbers.
MOST_COLUMNS = 1_000


@dataclass(frozen=True)
class SufficientStatistics(Refit):
    """Fits all columns by Newton steps whose curvature and gradients carry noise.

    For the squared loss the curvature and the gradient at 0 are the sufficient statistics of least
    squares. A second step at the first one's model needs less noise, since its slopes are smaller.
    Right where there are few columns and most of them matter.

    Parameters
    ----------
    steps : "auto"
        There are no selections to count.

    Notes
    -----
    *Privacy.* As for `PrivateGreedy`: docs/privacy/refit.md.
    """

    name = "sufficient-statistics"
    refits: ClassVar[tuple[defaults.Newton, ...]] = defaults.FITS_OF_ALL
    requirements = (
        *Refit.requirements,
        columns_at_most(
            MOST_COLUMNS, f"it releases second moments of all columns, of at most {MOST_COLUMNS}",
            'Use solver="greedy"',
        ),
    )  # fmt: skip

    def selections(self, problem: Problem, paid: Event) -> int:
        return 1

    def searches(self, steps: int) -> tuple[str, ...]:
        return ()

    def search(self, run: Run) -> None:
        run.support = list(range(run.problem.n_features))
        run.notify_progress()
