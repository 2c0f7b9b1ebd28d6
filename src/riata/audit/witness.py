"""A fit on one data set that is also seen from its neighbour.

For auditors, who have both data sets: what is recorded here is not protected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from riata.curator import ROWS, Curator
from riata.engines import LocalEngine
from riata.fitting import PlannedFit, plan, solve
from riata.mechanisms import Mechanism, ObjectivePerturbation
from riata.mechanisms.engine import Engine
from riata.mechanisms.noise import Noise
from riata.queries import Minimum, Query
from riata.solvers import Plan

Data = tuple[Any, Any]

#: Is told how many pairs or fits are done.
Progress = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class WitnessedRelease:
    """One release: what was asked, how, the exact sums on both sides, and what came out."""

    query: Query
    mechanism: Mechanism
    ours: np.ndarray
    theirs: np.ndarray
    released: Any
    asked: Query
    part: int


class _Remembering(Engine):
    """An engine that keeps its last sum: whoever asks the same query again need not wait."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._last: tuple[Query | None, np.ndarray] = None, np.empty(0)

    def total(self, query: Query) -> np.ndarray:
        if self._last[0] is not query:
            self._last = query, self._engine.total(query)
        return self._last[1]

    def part(self, part: int, parts: int) -> _Remembering:
        self.of_part = _Remembering(self._engine.part(part, parts))
        return self.of_part


class Witness(Curator):
    """A curator of one data set that records every release beside its neighbour's sums."""

    def __init__(self, ours: Engine, theirs: Engine, plan: Plan, noise: Noise) -> None:
        self._ours, self._theirs = _Remembering(ours), theirs
        super().__init__(self._ours, plan.event, noise, plan.parts, plan.adaptive)
        self._parts = plan.parts
        self.releases: list[WitnessedRelease] = []

    def release(self, query: Any, mechanism: Mechanism, part: int = 0, *, view: str = ROWS) -> Any:
        assert view == ROWS, "a solver sees the rows that it was given"
        released = super().release(query, mechanism, part)
        ours, theirs = self._ours, self._theirs
        if self._parts > 1:
            ours, theirs = ours.of_part, theirs.part(part, self._parts)
        for look, how, outcome in looks(query, mechanism, released):
            self.releases.append(
                WitnessedRelease(
                    look, how, ours.total(look), theirs.total(look), outcome, query, part
                )
            )
        return released


def looks(query: Query, mechanism: Mechanism, released: Any) -> list[tuple[Query, Mechanism, Any]]:
    """The sums that one release rests on, the mechanism that protects each, and what it told."""
    if isinstance(mechanism, ObjectivePerturbation):
        assert isinstance(query, Minimum)
        return [(query.gradient(released), mechanism, released)]
    return mechanism.components(query, released)


class Trial:
    """An estimator with its rows on both sides, ready to be run as often as an audit needs.

    The plan of a trial `like` it, of the same model on data of the same shape, is used again.
    """

    def __init__(self, model: Any, data: Data, neighbour: Data, like: Trial | None = None) -> None:
        request, rows = model.request(*data)
        self.planned: PlannedFit = like.planned if like else plan(request)
        self.ours, self.theirs = (
            self.plan.engine(LocalEngine, *each.load())
            for each in (rows, model.request(*neighbour)[1])
        )

    @property
    def plan(self) -> Plan:
        return self.planned.plan

    def run(self, noise: Noise, *, swapped: bool = False) -> list[WitnessedRelease]:
        """Everything released by one fit, on our rows or, `swapped`, on theirs."""
        sides = (self.theirs, self.ours) if swapped else (self.ours, self.theirs)
        witness = Witness(*sides, self.plan, noise)
        solve(self.planned, witness)
        return witness.releases
