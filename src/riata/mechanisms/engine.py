"""What sums queries over the rows, and what else it may know about them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NoReturn

import numpy as np

from riata.queries import FrankWolfePath, Query


class Engine(ABC):
    """Sums queries over the rows, wherever they are.

    An engine that can do nothing but sum implements `total`, and `part` for plans that split the
    rows. The rest has defaults, and changes the time that a release takes and nothing else.
    """

    @abstractmethod
    def total(self, query: Query) -> np.ndarray:
        """The sum of the query's integers over all rows, exactly, as 64-bit integers."""

    def part(self, part: int, parts: int) -> Engine:
        """The same for every row whose number leaves the rest `part` when divided by `parts`."""
        raise NotImplementedError(f"{type(self).__name__} does not split its rows.")

    @property
    def readings(self) -> int:
        """How often rows were read, all or some. What is read again may have changed."""
        return 1

    def scores(self, query: Any, factor: float) -> Scores | None:
        """The utilities of a selection, known up to bounds; None if they are to be summed.

        `factor` times a utility is the logarithm of a candidate's weight.
        """
        return None

    def compiles(self, path: FrankWolfePath, epsilon: float) -> bool:
        """Whether compiled code is to select along a whole path. Says nothing about the rows.

        `epsilon` is that of each selection.
        """
        return False

    def compiled_path(self, path: FrankWolfePath, epsilon: float) -> CompiledPath:
        """What selects along a path: the same as before, for the same path."""
        raise NotImplementedError(f"{type(self).__name__} has no compiled code: see `compiles`.")

    def close(self) -> None:  # noqa: B027 (most engines have nothing to let go of)
        """Let go of the rows, and of what belongs to them."""

    def __reduce__(self) -> NoReturn:
        raise TypeError("An engine holds private rows and cannot be pickled.")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class Scores(ABC):
    """Utilities of many candidates, known up to bounds, and exactly one by one.

    With `symmetric` a candidate stands for two, of its utility and of the opposite one.
    """

    symmetric: bool

    #: Changes whenever `groups` does.
    version: int = 0

    @abstractmethod
    def groups(self) -> tuple[np.ndarray, np.ndarray]:
        """How many candidates each group has, and a bound that all their utilities keep.

        The bound is on the utilities themselves, or on their sizes if `symmetric`.
        """

    @abstractmethod
    def candidate(self, group: int, place: int) -> int:
        """The number of the candidate at a place of a group."""

    @abstractmethod
    def between(self, group: int, candidate: int) -> tuple[float, float]:
        """Bounds on its utility."""

    def closely(self, group: int, candidate: int) -> tuple[float, float] | None:
        """Better bounds, if they can be had in less time than the utility itself."""
        return None

    @abstractmethod
    def exactly(self, group: int, candidate: int) -> float:
        """Its utility. May improve the bounds of all groups."""

    def rejected(self) -> None:  # noqa: B027 (scores need not learn)
        """A proposal was in vain. May improve the bounds of all groups."""


class CompiledPath(ABC):
    """Selections along a Frank-Wolfe path, made until something is needed from outside."""

    @property
    @abstractmethod
    def step(self) -> int:
        """How many vertices were selected."""

    @property
    @abstractmethod
    def vertices(self) -> np.ndarray:
        """Their numbers, in order."""

    @property
    @abstractmethod
    def coin(self) -> int:
        """The first bits of the uniform variable that a question is about."""

    @abstractmethod
    def advance(self, until: int) -> str | None:
        """Go on to step `until`, or to a question: for "words", or to "decide" something."""

    @abstractmethod
    def refill(self, words: np.ndarray) -> None:
        """More random words."""

    @abstractmethod
    def exact_chance(self, mp: Any, epsilon: float) -> Any:
        """The probability that a question is about, in the precision of a context."""

    @abstractmethod
    def answer(self, positive: bool) -> None:
        """What was decided: accepted or not, or the sign."""
