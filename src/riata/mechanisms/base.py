"""What turns a query into a release."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from riata.mechanisms.engine import Engine
from riata.mechanisms.noise import Noise
from riata.privacy.events import Event


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
