"""Peeling: the largest entries of a vector, and their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from riata.mechanisms.additive import Additive
from riata.mechanisms.base import Mechanism
from riata.mechanisms.engine import Engine
from riata.mechanisms.noise import Noise
from riata.mechanisms.selection import TopK
from riata.privacy.events import Event, compose
from riata.queries import GradientStep, MeanVector, Query
from riata.vectors import Vector


@dataclass(frozen=True)
class Peeling(Mechanism):
    """Selects the largest entries of theta - rate * gradient or of a mean, and releases them.

    Cai, Wang and Zhang (2019) peel off one entry after the other, each the arg max of sizes with
    fresh noise. With Gumbel noise, one draw and the k largest have the same distribution, and the
    cost is that of k exponential mechanisms.

    Parameters
    ----------
    select : TopK
        Which entries.
    values : GaussianMechanism or LaplaceMechanism
        How their values are released.
    """

    select: TopK
    values: Additive

    @property
    def event(self) -> Event:
        return compose((self.select.event, 1), (self.values.event, 1))

    def release(self, query: GradientStep | MeanVector, engine: Engine, noise: Noise) -> Vector:
        columns = self.select.release(query, engine, noise)  # lines 2-6 of the algorithm
        entries = self.values.release(query.entries(columns), engine, noise)  # line 7
        return query.moved(columns, entries)  # line 8

    def components(
        self, query: GradientStep | MeanVector, released: Vector
    ) -> list[tuple[Query, Mechanism, Any]]:
        """Which columns, without their order, and their entries of the gradient."""
        columns, entries = released.support, query.entries_of(released)
        return [(query, self.select, columns), (query.entries(columns), self.values, entries)]

    def describe(self, times: int) -> str:
        return f"peeling; {self.select.describe(times)}; {self.values.describe(times)}"
