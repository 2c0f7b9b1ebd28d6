"""The budget of a data set over time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from riata.report.plots import Plot, of_budget
from riata.report.text import Table, shortened

if TYPE_CHECKING:
    from riata.privacy.ledger import Ledger

MOST_CHARGES = 200
_HEAD = ("charge", "when", "estimator", "solver", "asked for", "total after")


@dataclass(frozen=True)
class Spending:
    """What a ledger says; `share` is the part of the ceiling that is spent."""

    dataset: str
    summary: str
    share: float
    plot: Plot | None
    table: Table | None
    note: str


def spending(ledger: Ledger) -> Spending:
    """Every charge of a ledger, and the ceiling."""
    charges, ceiling = ledger.charges, ledger.ceiling
    totals = [charge.total / 1e9 for charge in charges]
    used = totals[-1] if totals else 0.0
    summary = (
        f"Epsilon {used:.6g} of {ceiling.epsilon:.6g} is spent, at delta {ceiling.delta:g} and "
        f"between {ceiling.adjacency} neighbours. Charges: {len(charges):,}. They are composed, "
        "which can cost less than their sum."
    )
    if not charges:
        return Spending(ledger.dataset, summary, 0.0, None, None, "")
    pairs = list(zip(charges, totals, strict=True))[-MOST_CHARGES:]
    note = ""
    if len(charges) > len(pairs):
        note = f"The last {len(pairs):,} of {len(charges):,} charges. The ledger has all of them."
    times = [datetime.fromisoformat(charge.charged_at) for charge in charges]
    return Spending(
        ledger.dataset,
        summary,
        min(1.0, used / ceiling.epsilon),
        of_budget(times, totals, ceiling.epsilon),
        Table("Charges", _HEAD, [_cells(*each) for each in pairs], frozenset({0, 4, 5})),
        note,
    )


def _cells(charge: Any, total: float) -> list[str]:
    summary = charge.summary
    asked = summary.get("epsilon", math.nan)
    return [
        str(charge.seq),
        f"{charge.charged_at[:16].replace('T', ' ')} UTC",
        shortened(summary.get("estimator", ""), 60),
        shortened(summary.get("solver", ""), 60),
        "" if math.isnan(asked) else f"{asked:.4g}",
        f"{total:.6g}",
    ]
