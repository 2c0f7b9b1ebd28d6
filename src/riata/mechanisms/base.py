"""What turns a query into a release."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np

from riata.mechanisms.noise import Noise
from riata.privacy.events import Event
from riata.queries import Query


class Engine(Protocol):
    """Sums queries over the rows, wherever they are."""

    def total(self, query: Query) -> np.ndarray:
        """The sum of the query's integers over all rows, exactly, as 64-bit integers."""
        ...

    def part(self, part: int, parts: int) -> Engine:
        """The same for every row whose number leaves the rest `part` when divided by `parts`."""
        ...


class Mechanism(ABC):
    """A way to answer a query, with a proven cost.

    A mechanism owns no rows: it is handed an engine for one release and returns the release. It
    may sum the query as often as it likes; only what it returns is charged and seen.
    """

    @property
    @abstractmethod
    def event(self) -> Event:
        """What one release costs, whatever the query."""

    @abstractmethod
    def release(self, query: Query, engine: Engine, noise: Noise) -> Any:
        """The answer, noise included."""

    @abstractmethod
    def describe(self, times: int) -> str:
        """One line for plans and Statements."""
