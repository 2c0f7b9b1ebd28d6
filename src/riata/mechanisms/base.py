"""What turns a query into a release."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np

from riata.mechanisms.noise import Noise
from riata.privacy.events import Leaf
from riata.queries import Query


class Engine(Protocol):
    """Evaluates queries over the rows, wherever they are."""

    def evaluate(self, query: Query) -> np.ndarray: ...


class Mechanism(ABC):
    """A way to answer a query, with a proven cost.

    A mechanism owns no rows: it is handed an engine for one release and returns the release. It
    may evaluate the query as often as it likes; only what it returns is charged and seen.
    """

    @property
    @abstractmethod
    def event(self) -> Leaf:
        """What one release costs, whatever the query."""

    @abstractmethod
    def release(self, query: Query, engine: Engine, noise: Noise) -> Any:
        """The answer, noise included."""

    @abstractmethod
    def describe(self, times: int) -> str:
        """One line for plans and Statements."""
