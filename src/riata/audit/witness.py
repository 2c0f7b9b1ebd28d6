"""A fit on one data set that is also seen from its neighbour.

For auditors, who have both data sets: what is recorded here is not protected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from riata.curator import Curator
from riata.engines import LocalEngine
from riata.mechanisms import Mechanism
from riata.mechanisms.base import Engine
from riata.mechanisms.noise import Noise
from riata.problem import Problem
from riata.queries import Query
from riata.solvers import Plan, Solver

Data = tuple[Any, Any]

#: Is told how many pairs or fits are done.
Progress = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Seen:
    """One release: what was asked, how, the exact sums on both sides, and what came out."""

    query: Query
    mechanism: Mechanism
    ours: np.ndarray
    theirs: np.ndarray
    released: Any


class _Remembering:
    """An engine that keeps its last sum."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def total(self, query: Query) -> np.ndarray:
        self.last = self._engine.total(query)
        return self.last


class Witness(Curator):
    """A curator of one data set that records every release beside its neighbour's sums."""

    def __init__(self, ours: Engine, theirs: Engine, plan: Plan, noise: Noise) -> None:
        self._ours, self._theirs = _Remembering(ours), theirs
        super().__init__(self._ours, plan.event, noise)
        self.seen: list[Seen] = []

    def release(self, query: Query, mechanism: Mechanism) -> Any:
        released = super().release(query, mechanism)
        sums = self._ours.last, self._theirs.total(query)
        self.seen.append(Seen(query, mechanism, *sums, released))
        return released


class Trial:
    """An estimator with its rows on both sides, ready to be run as often as an audit needs.

    Parameters
    ----------
    model : estimator
    data, neighbour : tuple of (X, y)
    like : Trial, optional
        A trial of the same model on data of the same shape, whose plan is used again.
    """

    def __init__(self, model: Any, data: Data, neighbour: Data, like: Trial | None = None) -> None:
        job = model._job(*data)
        self.planned: tuple[Solver, Plan, list[Problem]] = (
            like.planned if like else model._planned(job.losses, job.bounds, *job.shape)
        )
        self.ours, self.theirs = (
            LocalEngine(x, y, job.bounds) for x, y in (job.read(), model._job(*neighbour).read())
        )

    @property
    def plan(self) -> Plan:
        return self.planned[1]

    def run(self, noise: Noise, *, swapped: bool = False) -> list[Seen]:
        """Everything released by one fit, on our rows or, `swapped`, on theirs."""
        sides = (self.theirs, self.ours) if swapped else (self.ours, self.theirs)
        solver, plan, problems = self.planned
        witness = Witness(*sides, plan, noise)
        for problem in problems:
            solver.run(plan, problem, witness)
        return witness.seen
