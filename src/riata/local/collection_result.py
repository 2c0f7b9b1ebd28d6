"""What a collection came to, in one plain object that a report can be made from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from riata.local.aggregator import Aggregator
from riata.local.learners.model import LocalModel
from riata.local.task import Task
from riata.privacy.statement import Statement

if TYPE_CHECKING:
    from riata.local.task_plan import TaskPlan


class Column(NamedTuple):
    """A coefficient, or a mean, with its error bar.

    Attributes
    ----------
    name : str
    value, error : float
        The estimate and its standard error, in the units of the answers.
    reach : float
        How far an answer can be from its centre: `value * reach` is what a whole answer does.
    """

    name: str
    value: float
    error: float
    reach: float


@dataclass(frozen=True)
class CollectionResult:
    """The model of a collection and everything that should be published with it.

    Attributes
    ----------
    model : LocalModel
    honest : dict
        For each question that can tell, the share of reports that do not look drawn at random.
    rejected : dict
        Reports that were not counted, by kind.
    """

    model: LocalModel
    honest: dict[str, float]
    rejected: dict[str, int]

    @classmethod
    def from_aggregator(cls, aggregator: Aggregator) -> CollectionResult:
        """Learn from what was counted."""
        shares = {name: check.share for name, check in aggregator.honesty().items()}
        return cls(aggregator.solve(), shares, dict(aggregator.rejected))

    @property
    def task(self) -> Task:
        return self.model.task

    @property
    def statement(self) -> Statement:
        """The guarantee that every device gave to its owner."""
        return self.model.privacy

    @cached_property
    def forecast(self) -> TaskPlan | None:
        """What was to be expected of so many reports. Thousands of columns take minutes."""
        return self.task.plan(self.model.reports) if self.model.reports else None

    @property
    def columns(self) -> tuple[Column, ...]:
        """What was learned, column by column; nothing for a kernel."""
        if self.task.spec.kernel:
            return ()
        reach = self.task.encoding.by_column(lambda feature: feature.reach)
        numbers = (self.model.estimates, self.model.errors, reach)
        return tuple(map(Column, self.model.names, *(one.tolist() for one in numbers)))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        facts: dict[str, Any] = {
            "task": self.task.table(),
            "reports": self.model.reports,
            "signal": self.model.signal,
            "honest": self.honest,
            "rejected": self.rejected,
            "privacy": self.statement.to_dict(),
        }
        if self.task.spec.kernel:
            return facts | {"theta": self.model.theta.tolist(), "offset": self.model.offset}
        if self.task.target is not None:
            facts["intercept"] = self.model.intercept
        return facts | {"columns": [one._asdict() for one in self.columns]}

    def __str__(self) -> str:
        return f"{self.model}\n{self.statement}"
