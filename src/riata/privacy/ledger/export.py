"""A ledger in words and in JSON."""

from __future__ import annotations

import json
from decimal import ROUND_CEILING

from riata.privacy.ledger.entries import Entries, decimal, nano

#: Columns that hold JSON.
_PARSED = ("unit", "event", "summary", "sums")


def summary_text(entries: Entries) -> str:
    """The ceiling, what is spent and left, and one line for each charge."""
    used, limit, person = entries.cost(), entries.header.ceiling, entries.person
    total = nano(used.epsilon, ROUND_CEILING)
    whose = f" by {person!r}" if person else ""
    texts = [
        f"Ledger of {entries.head.dataset!r}, {entries.ceiling.adjacency}{whose}",
        f"ceiling  epsilon {decimal(limit)} at delta {entries.ceiling.delta:g}",
        f"spent    epsilon {decimal(total)} by {used.accountant}",
        f"left     epsilon {decimal(limit - total)}",
    ]
    for c in entries.charges:
        what = ", ".join(str(c.summary[k]) for k in ("estimator", "solver") if k in c.summary)
        texts.append(f"{c.seq:>5}  {c.charged_at[:19]}Z  {what or '-'}  total {decimal(c.total)}")
    return "\n".join(texts)


def json_text(entries: Entries) -> str:
    """Header, entries and macs as JSON. Never the key."""
    made = [
        {name: json.loads(v) if name in _PARSED else v for name, v in row._mapping.items()}
        for row in entries.rows
    ]
    return json.dumps({"header": dict(entries.header._mapping), "entries": made}, indent=1)
