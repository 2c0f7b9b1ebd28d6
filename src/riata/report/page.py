"""A model's page as one file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from riata.errors import InvalidArgument
from riata.estimators.coefficients import coefficients
from riata.estimators.description import ModelDescription, describe
from riata.estimators.local_base import LocalEstimator
from riata.estimators.pipelines import inner_model
from riata.estimators.summary import summarize
from riata.forecasting import Forecast
from riata.report import facts
from riata.report.card import card
from riata.report.functions import DRAWN, functions
from riata.report.guarantee import guarantee
from riata.report.plots import Plot, plot
from riata.report.spending import spending
from riata.report.text import Table, capital, plain

_NEEDED = {"jinja2": "Jinja2", "matplotlib": "matplotlib"}


def missing() -> list[str]:
    """The packages that a report needs and that are not installed."""
    return [name for module, name in _NEEDED.items() if find_spec(module) is None]


@dataclass(frozen=True)
class Section:
    """A section of the caller's own, shown after the coefficients. All text is escaped.

    Parameters
    ----------
    title : str
    text : sequence of str
        Paragraphs.
    head : sequence of str
        Of a table; columns after the first are aligned as numbers.
    rows : sequence of sequences of str
    draw : callable, optional
        ``draw(figure, width)`` draws on an empty matplotlib figure, whose width is given in inches:
        once for a page and once for a phone.
    label : str
        What the drawing shows, for people who cannot see it.
    """

    title: str
    text: Sequence[str] = ()
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    draw: Callable[[Any, float], None] | None = None
    label: str = ""

    def _plot(self, number: int) -> Plot | None:
        if self.draw is None:
            return None
        return plot(f"section-{number}", plain(self.label or self.title), self.draw)

    def _table(self) -> Table | None:
        if not self.rows:
            return None
        head = list(self.head)
        rows = [[str(cell) for cell in row] for row in self.rows]
        return Table(self.title, head, rows, frozenset(range(1, len(head))))


def html(
    model: Any,
    *,
    ledger: Any = None,
    forecast: Any = None,
    title: str | None = None,
    names: Sequence[str] | None = None,
    sections: Sequence[Section] = (),
) -> str:
    """A page about a fitted model, as text that needs nothing else.

    Parameters
    ----------
    model : fitted estimator or LocalModel
        Any estimator of riata, a pipeline of `SchemaEncoder` and one, or what
        `riata.local.Aggregator.solve` learned.
    ledger : Ledger, optional
        Whose charges are shown. By default the ledger of the estimator, if it has one.
    forecast : Forecast, optional
        What was expected before the fit, from `riata.forecast`.
    title : str, optional
    names : sequence of str, optional
        Of the columns, for a model that was fitted to rows without names.
    sections : sequence of Section, optional
        More to show, such as scores on rows that were held out.

    Returns
    -------
    str

    Notes
    -----
    *Privacy.* The page shows the model, its Statement and the ledger. It reads no row. What a
    caller's own section shows is up to the caller.
    """
    model = inner_model(model)
    statement = facts.statement_of(model)
    ledger = ledger if ledger is not None else getattr(model, "ledger", None)
    _check(ledger, forecast)
    found, about = coefficients(model, names), describe(model)
    task, summary = about.task, summarize(model, 0.9, most=DRAWN)
    page: str = _template().render(
        title=plain(title or _title(about)),
        kind=about.name,
        made=datetime.now(UTC).date().isoformat(),
        statement=statement,
        guarantee=guarantee(statement, isinstance(model, LocalEstimator)),
        facts=facts.statement_rows(statement),
        plan=facts.plan_rows(model, statement),
        task=task,
        task_rows=facts.task_rows,
        questions=facts.questions,
        values=capital(f"{summary.what}s"),
        functions=functions(found, summary.what, summary, about.schema),
        spending=None if ledger is None else spending(ledger),
        forecast=forecast,
        sections=[(each, each._plot(k), each._table()) for k, each in enumerate(sections)],
        card=card(model, statement, found),
        versions=facts.versions(),
    )
    return page


def _template() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("riata.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"plain": plain, "capital": capital}
    return environment.get_template("report.html")


def write(model: Any, path: str | os.PathLike[str], **options: Any) -> None:
    """Write the page of `html`, with the same options, to a file, replacing it if there is one."""
    Path(path).write_text(html(model, **options), encoding="utf-8")


def _check(ledger: Any, forecast: Any) -> None:
    if ledger is not None:
        from riata.privacy.ledger import Ledger  # SQLAlchemy is slow to import

        if not isinstance(ledger, Ledger):
            raise InvalidArgument(
                f"ledger must be a Ledger, got {type(ledger).__name__}. Open one with Ledger.open."
            )
    if forecast is not None and not isinstance(forecast, Forecast):
        raise InvalidArgument(
            f"forecast must be a Forecast, got {type(forecast).__name__}. Make one with "
            "riata.forecast."
        )
    packages = missing()
    if packages:
        raise InvalidArgument(
            f"A report needs {' and '.join(packages)}, which {'are' if packages[1:] else 'is'} not "
            'installed. Install the extra: pip install "riata[report]".'
        )


def _title(about: ModelDescription) -> str:
    if about.task is not None and about.task.title:
        return about.task.title
    return f"Report on a {'local model' if about.collected else about.name}"
