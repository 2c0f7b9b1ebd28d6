"""The only object that gives access to rows, through one method: `release`."""

from __future__ import annotations

import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from riata.checkpoint import Checkpoint
from riata.errors import BudgetExceeded, CheckpointError
from riata.mechanisms.base import Mechanism
from riata.mechanisms.engine import Engine
from riata.mechanisms.noise import Noise
from riata.privacy.accountants import PureAccountant, ZcdpAccountant
from riata.privacy.budget import REPLACE_LABEL, REPLACE_ONE
from riata.privacy.events import Event, Pure, compose, leaves, to_json
from riata.privacy.unit import PrivacyUnit
from riata.queries import FrankWolfePath, Query
from riata.releases import notify
from riata.wording import number_of

if TYPE_CHECKING:  # SQLAlchemy is slow to import, and most fits have no ledger
    from riata.privacy.ledger import Charge, Ledger


class Account(ABC):
    """What was paid for and is not used yet."""

    @abstractmethod
    def take(self, event: Event) -> None:
        """Use up what one release costs, or raise `BudgetExceeded`."""


class Listed(Account):
    """A list of events: a release must be one of them."""

    def __init__(self, event: Event) -> None:
        self._left = leaves(event)

    def take(self, event: Event) -> None:
        cost = leaves(event)
        for leaf, count in cost.items():
            if self._left[leaf] < count:
                raise BudgetExceeded(
                    f"The plan has no {leaf} left: this release is outside what was charged. "
                    "Plan for every release that the solver makes."
                )
        self._left -= cost

    def __repr__(self) -> str:
        return f"{number_of(sum(self._left.values()), 'release')} left"


class Filter(Account):
    """A privacy filter: releases may be chosen in the light of earlier ones, up to a sum.

    The sum of rho, or of epsilon where the plan is pure, in exact arithmetic (docs/privacy/
    filter.md).
    """

    def __init__(self, event: Event) -> None:
        pure = all(isinstance(leaf, Pure) for leaf in leaves(event))
        self._cost = (PureAccountant() if pure else ZcdpAccountant()).exactly
        self._left: Fraction = self._cost(event)

    def take(self, event: Event) -> None:
        cost = self._cost(event)
        if cost > self._left:
            raise BudgetExceeded(
                "A release would cost more than is left of the plan. Plan for every release that "
                "the solver makes."
            )
        self._left -= cost

    def __repr__(self) -> str:
        return f"{float(self._left):.3g} left of the filter"


class SumsAlone(Engine):
    """An engine that sums and does nothing else.

    Then what a mechanism releases is a function of sums and noise, and the same in every engine:
    a run that goes on elsewhere, or a copy of it, repeats it.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def total(self, query: Query) -> np.ndarray:
        return self._engine.total(query)

    def part(self, part: int, parts: int) -> SumsAlone:
        return SumsAlone(self._engine.part(part, parts))


#: The view of the rows that queries are about, unless they name another one.
ROWS = "rows"


class Curator:
    """Answers queries through mechanisms, within a plan that has been paid for.

    Use `Curator.open`: it charges the plan first and only then lets the rows be read.
    """

    def __init__(
        self,
        engine: Engine,
        event: Event,
        noise: Noise,
        parts: int = 1,
        adaptive: bool = False,
        checkpoint: Checkpoint | None = None,
        views: Mapping[str, Engine] | None = None,
    ) -> None:
        self._views = {**(views or {}), ROWS: engine}
        self._noise = noise
        self._checkpoint = checkpoint
        self._paid_for = [(Filter if adaptive else Listed)(event) for _ in range(parts)]
        self._coded: tuple[int, ...] = ()  # the readings of the rows whose code is known
        self._turn = threading.Lock()
        self._numbers = itertools.count()

    @classmethod
    def open(
        cls,
        event: Event,
        *,
        cost: Event | None = None,
        read: Callable[[], Engine],
        views: Mapping[str, Callable[[], Engine]] | None = None,
        noise: Noise,
        adjacency: str,
        parts: int = 1,
        adaptive: bool = False,
        ledger: Ledger | None = None,
        unit: PrivacyUnit | None = None,
        summary: dict[str, Any] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Curator:
        """Charge `event` to the ledger, then read the rows.

        Parameters
        ----------
        event : Event
            The cost of everything that may be released, between data sets that differ by one row.
        cost : Event, optional
            The same between neighbours, if they may differ by several rows.
        read : callable
            Builds the engine. It is called only after the charge is durable.
        views : mapping of str to callable, optional
            Engines with other views of the same rows, by name, built when the rows are read. What
            is seen there of a row must depend on that row alone. There are no others: the code of
            the rows in a checkpoint is of all that may be asked.
        noise : Noise
        adjacency : str
        parts : int, default=1
            Into how many disjoint parts the rows are split. Each may be asked all that the event
            pays for: a row is in one part only.
        adaptive : bool, default=False
            Whether the event is an adaptive budget (privacy filter), and not a list of releases.
        ledger : Ledger, optional
        unit : PrivacyUnit, optional
            What the ledger is told to be protected. Needed there if it is a person.
        summary : dict, optional
            Public facts about the plan, kept with the charge.
        checkpoint : Checkpoint, optional
            Where releases are written down. A run that goes on was charged when it began.
        """
        if parts > 1 and adjacency not in (REPLACE_ONE, REPLACE_LABEL):
            raise ValueError("A row that is taken away would move the others to other parts.")
        if checkpoint is not None and not checkpoint.needs_rows:
            nothing = {name: _NoRows() for name in views or {}}
            return cls(_NoRows(), event, noise, parts, adaptive, checkpoint, nothing)
        if ledger is not None:
            facts = dict(summary or {})
            paid = None
            if checkpoint is not None:
                facts |= {"run": checkpoint.run_id, "request": checkpoint.request}
                paid = ledger.charge_of(checkpoint.run_id)
            if paid is None:
                ledger.charge(cost or event, adjacency=adjacency, unit=unit, summary=facts)
            else:
                _check_charge(paid, cost or event, adjacency, unit, facts)
        engine = read()
        others = {name: build() for name, build in (views or {}).items()}
        opened = cls(engine, event, noise, parts, adaptive, checkpoint, others)
        if checkpoint is not None:
            run = checkpoint.run_id
            opened._bind(checkpoint, None if ledger is None else partial(ledger.bind_rows, run))
        return opened

    def release(
        self,
        query: Query | FrankWolfePath,
        mechanism: Mechanism,
        part: int = 0,
        *,
        view: str = ROWS,
    ) -> Any:
        """Answer one query. The only way that anything about the rows gets out.

        `view` is one of those that the curator was opened with.
        """
        found = self._release(query, mechanism, part, view)
        notify(query, mechanism, found, part=part, numbers=self._numbers)
        return found

    def _release(
        self,
        query: Query | FrankWolfePath,
        mechanism: Mechanism,
        part: int,
        view: str,
    ) -> Any:
        if not 0 <= part < len(self._paid_for):
            raise ValueError(f"There is no part {part}: the rows have {len(self._paid_for)}.")
        if view not in self._views:
            raise ValueError(f"There is no view {view!r} of the rows: {list(self._views)}.")
        if view != ROWS and not leaves(mechanism.event):
            raise ValueError(
                f"The view {view!r} may show targets among its columns, so no answer about it is "
                "free. Ask by a mechanism that costs something."
            )
        with self._turn:
            self._paid_for[part].take(mechanism.event)
            if self._checkpoint is None:
                return mechanism.release(query, self._engine(view, part), self._noise)
            known, found = self._checkpoint.known(mechanism.event)
            if not known:
                found = self._of_bound_rows(query, mechanism, self._engine(view, part))
                self._checkpoint.keep(mechanism.event, found)
            return found

    def _of_bound_rows(self, query: Any, mechanism: Mechanism, engine: Engine) -> Any:
        """A release over the rows that the run is bound to, though some may be read again.

        Noise that follows from the code of rows must not meet other rows.
        """
        checkpoint = self._checkpoint
        assert checkpoint is not None
        while True:
            if checkpoint.needs_rows and self._coded != self._readings:
                self._bind(checkpoint)
            noise = checkpoint.noise(query)
            found = mechanism.release(query, SumsAlone(engine), noise)
            if self._coded == self._readings:
                return found

    def _bind(self, checkpoint: Checkpoint, record: Callable[[str], str] | None = None) -> None:
        """Go on only if the rows, as the engines have them now in every view, are the run's."""
        query = checkpoint.row_digest()
        while True:
            readings = self._readings
            totals = {name: engine.total(query) for name, engine in self._views.items()}
            if readings == self._readings:
                checkpoint.bind(checkpoint.code_of(totals), record)
                self._coded = readings
                return

    @property
    def _readings(self) -> tuple[int, ...]:
        return tuple(engine.readings for engine in self._views.values())

    def compiles(self, query: FrankWolfePath, epsilon: float) -> bool:
        """Whether a whole path is best released at once. Depends on public facts alone."""
        alone = len(self._paid_for) == 1 and self._checkpoint is None
        return alone and self._views[ROWS].compiles(query, epsilon)

    def _engine(self, view: str, part: int) -> Engine:
        engine, parts = self._views[view], len(self._paid_for)
        return engine if parts == 1 else engine.part(part, parts)

    def close(self) -> None:
        """Everything that was planned has been released."""
        for engine in self._views.values():
            engine.close()
        if self._checkpoint is not None:
            self._checkpoint.close(over=True)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("A curator holds private rows and cannot be pickled.")

    def __repr__(self) -> str:
        return f"<Curator with {', '.join(map(repr, self._paid_for))}>"


class _NoRows(Engine):
    """Stands for the engine of a run that is over: all its releases are in its checkpoint."""

    def total(self, query: Query) -> np.ndarray:
        raise AssertionError("a run that is over asks for no sums")

    def part(self, part: int, parts: int) -> _NoRows:
        return self


def _check_charge(
    paid: Charge, cost: Event, adjacency: str, unit: PrivacyUnit | None, facts: dict[str, Any]
) -> None:
    """Raise unless a charge that has a run's id pays for that run."""
    wrong = [
        name
        for name, same in (
            ("cost", to_json(paid.event) == to_json(compose((cost, 1)))),
            ("unit of privacy", paid.unit == (unit or PrivacyUnit(adjacency))),
            ("request", paid.summary.get("request") == facts["request"]),
        )
        if not same
    ]
    if wrong:
        raise CheckpointError(
            f"Charge {paid.seq} of the ledger has the id of this run and another "
            f"{' and another '.join(wrong)}: it does not pay for the run. Name another file for "
            "the checkpoint, and the run is charged."
        )
