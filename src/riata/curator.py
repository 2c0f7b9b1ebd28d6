"""The only object that holds rows, and its one door."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from riata.errors import BudgetExceeded
from riata.mechanisms.base import Engine, Mechanism
from riata.mechanisms.noise import Noise
from riata.privacy.budget import REPLACE_ONE
from riata.privacy.events import Event, leaves
from riata.privacy.ledger import Ledger
from riata.queries import Query


class Curator:
    """Answers queries through mechanisms, within a plan that has been paid for.

    Use `Curator.open`: it charges the plan first and only then lets the rows be read.
    """

    def __init__(self, engine: Engine, event: Event, noise: Noise, parts: int = 1) -> None:
        self._engine = engine
        self._noise = noise
        self._paid_for = [leaves(event) for _ in range(parts)]
        self._turn = threading.Lock()

    @classmethod
    def open(
        cls,
        event: Event,
        *,
        read: Callable[[], Engine],
        noise: Noise,
        adjacency: str,
        parts: int = 1,
        ledger: Ledger | None = None,
        summary: dict[str, Any] | None = None,
    ) -> Curator:
        """Charge `event` to the ledger, then read the rows.

        Parameters
        ----------
        event : Event
            The cost of everything that may be released through this curator.
        read : callable
            Builds the engine. It is called only after the charge is durable.
        noise : Noise
        adjacency : str
        parts : int, default=1
            Into how many disjoint parts the rows are split. Each may be asked all that the event
            pays for: a row is in one part only.
        ledger : Ledger, optional
        summary : dict, optional
            Public facts about the plan, kept with the charge.
        """
        if parts > 1 and adjacency != REPLACE_ONE:
            raise ValueError("A row that is taken away would move the others to other parts.")
        if ledger is not None:
            ledger.charge(event, adjacency=adjacency, summary=summary or {})
        return cls(read(), event, noise, parts)

    def release(self, query: Query, mechanism: Mechanism, part: int = 0) -> Any:
        """Answer one query. The only way that anything about the rows gets out."""
        if not 0 <= part < len(self._paid_for):
            raise ValueError(f"There is no part {part}: the rows have {len(self._paid_for)}.")
        cost, paid_for = leaves(mechanism.event), self._paid_for[part]
        with self._turn:
            for leaf, count in cost.items():
                if paid_for[leaf] < count:
                    raise BudgetExceeded(
                        f"The plan has no {leaf} left: this release is outside what was charged. "
                        "Plan for every release that the solver makes."
                    )
            paid_for -= cost
        return mechanism.release(query, self._part(part), self._noise)

    def _part(self, part: int) -> Engine:
        parts = len(self._paid_for)
        return self._engine if parts == 1 else self._engine.part(part, parts)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("A curator holds private rows and cannot be pickled.")

    def __repr__(self) -> str:
        left = sum(sum(paid_for.values()) for paid_for in self._paid_for)
        return f"<Curator with {left} releases left>"
