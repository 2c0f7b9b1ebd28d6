"""A private LASSO on the packaged flights, beside the exact fit: `python -m riata.demo`."""

from __future__ import annotations

import html
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import Ridge

from riata import Ledger, PrivateLasso
from riata.datasets import load_flights
from riata.drawing import inline_svg
from riata.privacy import Budget

REPORT = Path("demo.html")
EPSILON, DELTA = 1.0, 1e-6
RIDGE = 1.0

#: How many standard errors a 90% interval reaches to each side.
NORMAL_90 = 1.645
SHOWN = 12


def main() -> None:
    console = Console()
    flights = load_flights()
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
    REPORT.write_text(
        _report(private, same_columns, scores, flights.feature_names), encoding="utf-8"
    )
    console.print(f"The report is in {REPORT}.")


def _report(
    private: PrivateLasso, exact: np.ndarray, scores: dict[str, float], names: list[str]
) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{score:.3f}</td></tr>"
        for name, score in scores.items()
    )
    return _PAGE.format(
        statement=private.privacy_._repr_html_(), rows=rows, plot=_plot(private, exact, names)
    )


def _plot(private: PrivateLasso, exact: np.ndarray, names: list[str]) -> str:
    """The largest private coefficients beside least squares on the same columns, as inline SVG."""
    from matplotlib.figure import Figure

    order = np.argsort(-np.abs(private.coef_))[:SHOWN][::-1]
    places = np.arange(len(order))
    figure = Figure(figsize=(7.5, 4.8), layout="constrained")
    axes = figure.subplots()
    axes.barh(places + 0.2, private.coef_[order], height=0.4, label="private", color="#b45309")
    axes.errorbar(
        private.coef_[order], places + 0.2, xerr=NORMAL_90 * private.coef_error_[order],
        fmt="none", ecolor="#1c1917", elinewidth=1, capsize=2,
    )  # fmt: skip
    axes.barh(places - 0.2, exact[order], height=0.4, label="least squares", color="#94a3b8")
    axes.set_yticks(places, [names[i] for i in order])
    axes.set_xlabel("coefficient (units of three hours)")
    axes.axvline(0, color="black", linewidth=0.8)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return inline_svg(figure)


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>riata: a private LASSO</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 54rem; margin: 2rem auto; padding: 0 1rem;
       color: #1c1917; background: #fff; }}
table {{ border-collapse: collapse; font-size: .95rem; }}
td {{ padding: 2px 16px 2px 0; vertical-align: top; }}
svg {{ max-width: 100%; height: auto; }}
</style></head><body>
<h1>A private LASSO of arrival delays</h1>
<p>Flights that left New York in 2013. Every fourth flight was held out.</p>
<h2>Guarantee</h2>{statement}
<h2>R<sup>2</sup> on the held-out flights</h2><table>{rows}</table>
<h2>Largest private coefficients</h2>
<p>With 90% intervals for what the noise and the rows leave open. The coefficients of the private
model are released; those of least squares on the same columns are shown here because these flights
are public.</p>
{plot}
</body></html>
"""


if __name__ == "__main__":
    main()
