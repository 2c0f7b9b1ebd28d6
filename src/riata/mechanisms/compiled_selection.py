"""Many selections in one release, each at the model that the one before led to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from riata.mechanisms.base import Mechanism
from riata.mechanisms.engine import CompiledPath, Engine
from riata.mechanisms.exact import Refined, decide
from riata.mechanisms.noise import Noise
from riata.mechanisms.selection import ExponentialMechanism
from riata.privacy.events import Event, compose
from riata.queries import FrankWolfePath

#: Random words are drawn so many at a time.
_WORDS = 2**14


@dataclass(frozen=True)
class CompiledSelections(Mechanism):
    """`steps` exponential mechanisms along a path, in compiled code.

    Has the distribution of as many releases, one at a time, with utilities in units of their
    sensitivity (docs/privacy/compiled_selection.md). It goes on where the last release of the same
    path ended.

    Parameters
    ----------
    selection : ExponentialMechanism
    steps : int
    before : ndarray of int, optional
        What was released of the path before: for `components`, which say where it began.
    """

    selection: ExponentialMechanism
    steps: int
    before: np.ndarray | None = field(default=None, compare=False, repr=False)

    @property
    def event(self) -> Event:
        return compose((self.selection.event, self.steps))

    def release(self, query: FrankWolfePath, engine: Engine, noise: Noise) -> np.ndarray:
        """The numbers of the selected vertices, in order."""
        frank_wolfe = engine.compiled_path(query, self.selection.epsilon)
        begin = frank_wolfe.step
        while (question := frank_wolfe.advance(begin + self.steps)) is not None:
            if question == "words":
                frank_wolfe.refill(noise.words(_WORDS))
            else:
                frank_wolfe.answer(self._decided(frank_wolfe, noise))
        return frank_wolfe.vertices[begin:]

    def components(
        self, query: FrankWolfePath, released: np.ndarray
    ) -> list[tuple[Any, Mechanism, Any]]:
        """One selection after the other, each at the model that those before it led to."""
        before = np.empty(0, dtype=np.int64) if self.before is None else self.before
        known, begin = np.append(before, released), len(before)
        return [
            (query.utilities(query.theta(known[:t])), self.selection, int(known[t]))
            for t in range(begin, len(known))
        ]

    def _decided(self, frank_wolfe: CompiledPath, noise: Noise) -> bool:
        """What float64 cannot: the outcome for all further bits of a uniform variable."""
        epsilon = self.selection.epsilon

        def gap(mp: Any, u: Any) -> Any:
            return frank_wolfe.exact_chance(mp, epsilon) - u

        return bool(decide(Refined(frank_wolfe.coin, noise), gap, lambda gap: gap > 0))

    def describe(self, times: int) -> str:
        return self.selection.describe(times * self.steps)
