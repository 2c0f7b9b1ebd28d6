"""A private LASSO on the packaged flights, beside the exact fit: `python -m riata.demo`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import Ridge

from riata import Ledger, PrivateLasso, report
from riata.datasets.flights import Flights, load_flights
from riata.privacy import Budget

REPORT = Path("demo.html")
EPSILON, DELTA = 1.0, 1e-6
RIDGE = 1.0

#: How many standard errors a 90% interval reaches to each side.
NORMAL_90 = 1.645
SHOWN = 12


def main() -> None:
    console = Console()
    flights = with_references(load_flights())
    n = flights.x.shape[0]
    train = np.arange(n) % 4 != 0  # every fourth flight is held out
    x, y = flights.x[train], flights.y[train]
    held_x, held_y = flights.x[~train], flights.bounds.clip_y(flights.y[~train])

    console.print(
        f"[bold]Predicting the arrival delay of {n:,} flights from {flights.x.shape[1]} columns"
        "[/bold]\nDelays are in units of three hours. One flight is one row.\n"
    )
    ledger = Ledger.create(":memory:", dataset="flights-2013", ceiling=Budget(EPSILON, DELTA))
    private = PrivateLasso(EPSILON, DELTA, bounds=flights.bounds, ledger=ledger, verbose=True)
    console.print(str(private.plan(*x.shape)), highlight=False, soft_wrap=True)
    console.print()
    private.fit(x, y)
    x, y = flights.bounds.clip_x(x), flights.bounds.clip_y(y)
    exact = Ridge(RIDGE, solver="lsqr").fit(x, y)
    columns = np.flatnonzero(private.coef_)
    same_columns = np.zeros_like(private.coef_)
    same_columns[columns] = Ridge(RIDGE, solver="lsqr").fit(x[:, columns], y).coef_

    scores = {
        f"private, epsilon {EPSILON:g}": private.score(held_x, held_y),
        "least squares, without privacy": exact.score(flights.bounds.clip_x(held_x), held_y),
        "always the mean": 0.0,
    }
    console.print()
    console.print(str(private.privacy_), highlight=False, soft_wrap=True)
    console.print(f"\n{ledger}\n", highlight=False, soft_wrap=True)
    table = Table(title="R2 on the held-out flights", title_justify="left")
    table.add_column("model")
    table.add_column("R2", justify="right")
    for name, score in scores.items():
        table.add_row(name, f"{score:.3f}")
    console.print(table)
    report.write(
        private,
        REPORT,
        title="A private LASSO of arrival delays",
        names=flights.feature_names,
        sections=[_compared(private, same_columns, scores, flights.feature_names)],
    )
    console.print(f"The report is in {REPORT}.")


def with_references(flights: Flights) -> Flights:
    """The flights without the first category of each kind, which the others are compared with.

    With all of them, and an intercept, only differences between them would be determined.
    """
    kinds = [name.partition("=")[0] for name in flights.feature_names]
    kept = [
        j for j, name in enumerate(flights.feature_names)
        if "=" not in name or kinds.index(kinds[j]) < j
    ]  # fmt: skip
    names = [flights.feature_names[j] for j in kept]
    return flights._replace(x=flights.x[:, kept], feature_names=names)


def _compared(
    private: PrivateLasso, exact: np.ndarray, scores: dict[str, float], names: list[str]
) -> report.Section:
    return report.Section(
        "Beside the fit without privacy",
        text=(
            "Flights that left New York in 2013, with delays in units of three hours. Every fourth "
            "flight was held out, and the table has the R2 on these. Categories are compared with "
            "the first of their kind: January, Newark (EWR), and so on.",
            "The coefficients of least squares on the columns of the private model can be shown "
            "here because these flights are public. The private fit clips large residuals, as a "
            "Huber regression does, so some of its coefficients differ from those by more than "
            "their intervals say.",
        ),
        head=("model", "R2 on held-out flights"),
        rows=[(name, f"{score:.3f}") for name, score in scores.items()],
        draw=_plot(private, exact, names),
        label="The largest private coefficients beside those of least squares.",
    )


def _plot(
    private: PrivateLasso, exact: np.ndarray, names: list[str]
) -> Callable[[Any, float], None]:
    """The largest private coefficients beside least squares on the same columns."""
    order = np.argsort(-np.abs(private.coef_))[:SHOWN][::-1]
    places = np.arange(len(order))

    def draw(figure: Any, width: float) -> None:
        figure.set_figheight(4.8)
        axes = figure.subplots()
        axes.barh(places + 0.2, private.coef_[order], height=0.4, label="private", color="#b45309")
        axes.errorbar(
            private.coef_[order], places + 0.2, xerr=NORMAL_90 * private.coef_error_[order],
            fmt="none", ecolor="#1c1917", elinewidth=1, capsize=2,
        )  # fmt: skip
        axes.barh(places - 0.2, exact[order], height=0.4, label="least squares", color="#94a3b8")
        axes.set_yticks(places, [names[j] for j in order])
        axes.set_xlabel("coefficient (units of three hours)")
        axes.axvline(0, color="#1c1917", linewidth=0.8)
        axes.legend()

    return draw


if __name__ == "__main__":
    main()
