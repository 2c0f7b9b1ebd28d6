"""The guarantee that ships with every model, for people and for programs."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from riata.privacy.budget import ADJACENCY_IN_WORDS
from riata.wording import facts_html, number_of, rounded


@dataclass(frozen=True)
class Statement:
    """What is promised about a fitted model. Everything in it is public.

    Attributes
    ----------
    epsilon, delta : float
        The guarantee that holds for everything the fit released.
    adjacency : str
        Between which data sets it holds.
    seeded : bool
        Whether the noise came from a known seed. Such a model protects nobody.
    solver, steps, accountant : str, int, str
        The algorithm, its number of private steps, and who proved the total.
    releases : tuple of str
        Each kind of access to the rows, with its noise.
    public : dict
        What the guarantee treats as known to everybody.
    notes : tuple of str
        What was done to rows and parameters that a reader should know.
    request : str
        The digest of everything public that decided what was released. The charge in a ledger and
        a checkpoint carry the same.
    """

    epsilon: float
    delta: float
    adjacency: str
    solver: str
    steps: int
    accountant: str
    releases: tuple[str, ...]
    public: dict[str, Any]
    seeded: bool = False
    notes: tuple[str, ...] = field(default=())
    request: str = ""

    @property
    def private(self) -> bool:
        """Whether the model may be called differentially private."""
        return math.isfinite(self.epsilon) and not self.seeded

    @property
    def sentence(self) -> str:
        """The guarantee in one sentence."""
        if not math.isfinite(self.epsilon):
            return "NOT PRIVATE: the model was fitted without noise."
        claim = f"({self.epsilon:g}, {self.delta:g})-differentially private"
        if self.delta == 0:
            claim = f"{self.epsilon:g}-differentially private"
        where = ADJACENCY_IN_WORDS[self.adjacency]
        if self.seeded:
            return (
                "SEEDED: NOT PRIVATE. The noise can be computed again from random_state. With "
                f"secret noise the model would be {claim}, where {where}."
            )
        return f"The model is {claim}, where {where}."

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {"private": self.private, "sentence": self.sentence, **asdict(self)}

    def public_rows(self) -> list[tuple[str, str]]:
        """What is public, by its name: bounds and sets with numbers as people read them."""
        return [
            (key, rounded(str(value)) if key in ("bounds", "set") else str(value))
            for key, value in self.public.items()
        ]

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("solver", f"{self.solver}, {number_of(self.steps, 'step')}"),
            ("accounting", self.accountant),
            *(("released", line) for line in self.releases),
            *((f"public: {key}", value) for key, value in self.public_rows()),
            *(("note", line) for line in self.notes),
            *((("request", self.request),) if self.request else ()),
        ]

    def __str__(self) -> str:
        width = max(len(key) for key, _ in self._rows())
        lines = [self.sentence, *(f"  {key:<{width}}  {value}" for key, value in self._rows())]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        # To be read on white and on black.
        edge, colour = ("#15803d", "inherit") if self.private else ("#dc2626", "#dc2626")
        return facts_html(self.sentence, self._rows(), edge, colour)
