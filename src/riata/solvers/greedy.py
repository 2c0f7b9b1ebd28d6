"""Private greedy selection: one column at a time, and a refit of those that were found."""

from __future__ import annotations

from dataclasses import dataclass

from riata.privacy.events import Event
from riata.problem import Problem
from riata.solvers import defaults
from riata.solvers.refit import Refit, Run, ruled_selections


@dataclass(frozen=True)
class PrivateGreedy(Refit):
    """Selects the column that lowers the risk most, moves along it, and refits what it found.

    Slopes and entries are clipped at private scales for the selection, so its noise shrinks as the
    model gets better. A selection after one that found nothing is paid more, until too little is
    left; what is left goes into the refit.

    Parameters
    ----------
    steps : int or "auto", default="auto"
        The number of selections that the budget of the search would pay for if each found
        something. "auto" follows an explicit rule. Public.

    Notes
    -----
    *Privacy.* Everything that is released is paid from a privacy filter of zero-concentrated
    privacy, or of pure privacy where delta is 0: docs/privacy/refit.md.
    """

    name = "greedy"

    def selections(self, problem: Problem, paid: Event) -> int:
        return ruled_selections(problem, paid)

    def search(self, run: Run) -> None:
        left = whole = defaults.SEARCH * run.whole
        cost, failed, due = whole / run.steps, 0, defaults.FIRST_SCALE
        while cost <= left and run.made < defaults.MOST_SELECTIONS:
            left -= cost
            known = len(run.support)
            column, _ = run.select((1 - defaults.MEASURED) * cost)
            if not run.step_along(column, defaults.MEASURED * cost):
                cost, failed = cost * defaults.DEARER, failed + 1
            elif len(run.support) > known:
                failed = 0
            run.notify_progress()
            if len(run.selected) >= due and due <= defaults.LAST_SCALE:
                run.measure_slopes()
                due = 2 * due + 1
            if cost > whole / defaults.FEWEST or (run.selected and failed > defaults.PATIENCE):
                break
