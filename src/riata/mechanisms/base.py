"""What turns a query into a release."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

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


class Scores(Protocol):
    """Utilities of many candidates, known up to bounds, and exactly one by one.

    With `symmetric` a candidate stands for two, of its utility and of the opposite one.
    """

    symmetric: bool

    def groups(self) -> tuple[np.ndarray, np.ndarray]:
        """How many candidates each group has, and a bound that all their utilities keep.

        The bound is on the utilities themselves, or on their sizes if `symmetric`.
        """
        ...

    def candidate(self, group: int, place: int) -> int:
        """The number of the candidate at a place of a group."""
        ...

    def between(self, group: int, candidate: int) -> tuple[float, float]:
        """Bounds on its utility."""
        ...

    def exactly(self, group: int, candidate: int) -> float:
        """Its utility. May improve the bounds of all groups."""
        ...

    def rejected(self) -> None:
        """Told of every proposal that was in vain. May improve the bounds of all groups."""
        ...

    @property
    def version(self) -> int:
        """Changes whenever `groups` does."""
        ...


def scores_of(engine: Engine, query: Any, factor: float) -> Scores | None:
    """The utilities of a selection, known up to bounds, if the engine and the query allow it.

    `factor` times a utility is the logarithm of a candidate's weight.
    """
    known = getattr(engine, "scores", None)  # engines may leave it out
    return None if known is None else known(query, factor)


class Mechanism(ABC):
    """A way to answer a query, with a proven cost.

    A mechanism owns no rows: it is handed an engine for one release and returns the release. It
    may sum the query as often as it likes; only what it returns is charged and seen.
    """

    #: The norm of the sensitivity that its noise is scaled to, if it is one number: "l1", "l2" or
    #: "linf".
    norm: ClassVar[str | None] = None

    @property
    @abstractmethod
    def event(self) -> Event:
        """What one release costs, whatever the query."""

    def sensitivity(self, query: Any) -> float | None:
        """The change of the query that its noise is scaled to, in `norm`."""
        return None if self.norm is None else query.sensitivity(self.norm)

    @abstractmethod
    def release(self, query: Any, engine: Engine, noise: Noise) -> Any:
        """The answer, noise included."""

    def components(self, query: Any, released: Any) -> list[tuple[Any, Mechanism, Any]]:
        """The releases that one consists of: what each asks, by which mechanism, and its outcome.

        For records and audits. The events of all of them are the event of the whole, and the
        outcomes follow from `released`.
        """
        return [(query, self, released)]

    @abstractmethod
    def describe(self, times: int) -> str:
        """One line for plans and Statements."""
