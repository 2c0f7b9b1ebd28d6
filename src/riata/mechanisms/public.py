"""Exact answers about what is public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from riata.mechanisms.base import Mechanism
from riata.mechanisms.engine import Engine
from riata.mechanisms.noise import Noise
from riata.privacy.events import Event, compose
from riata.queries import RowQuery
from riata.wording import number_of


@dataclass(frozen=True)
class PublicAnswer(Mechanism):
    """The exact answer to a query that is the same for all neighbours. It costs nothing."""

    @property
    def event(self) -> Event:
        return compose()

    def release(self, query: Any, engine: Engine, noise: Noise) -> Any:
        if not isinstance(query, RowQuery) or query.sensitivity("linf") != 0:
            raise ValueError(
                f"{type(query).__name__} under {query.adjacency} reads what is not public: only a "
                "query that gets no targets, where rows are public, has an exact answer."
            )
        return query.from_total(engine.total(query))

    def describe(self, times: int) -> str:
        return f"exact, since rows are public: up to {number_of(times, 'answer')} at no cost"
