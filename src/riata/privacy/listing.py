"""A ledger in words and in JSON."""

from __future__ import annotations

import json
from decimal import ROUND_CEILING

from riata.privacy.lines import Lines, decimal, nano

#: Columns that hold JSON.
_PARSED = ("unit", "event", "summary", "sums")


def listing(lines: Lines) -> str:
    """The ceiling, what is spent and left, and one line a charge."""
    used, limit, person = lines.cost(), lines.header.ceiling, lines.person
    total = nano(used.epsilon, ROUND_CEILING)
    whose = f" by {person!r}" if person else ""
    texts = [
        f"Ledger of {lines.head.dataset!r}, {lines.ceiling.adjacency}{whose}",
        f"ceiling  epsilon {decimal(limit)} at delta {lines.ceiling.delta:g}",
        f"spent    epsilon {decimal(total)} by {used.accountant}",
        f"left     epsilon {decimal(limit - total)}",
    ]
    for c in lines.charges:
        what = ", ".join(str(c.summary[k]) for k in ("estimator", "solver") if k in c.summary)
        texts.append(f"{c.seq:>5}  {c.charged_at[:19]}Z  {what or '-'}  total {decimal(c.total)}")
    return "\n".join(texts)


def exported(lines: Lines) -> str:
    """Header, charges and macs as JSON. Never the key."""
    charges = [
        {name: json.loads(v) if name in _PARSED else v for name, v in row._mapping.items()}
        for row in lines.rows
    ]
    return json.dumps({"header": dict(lines.header._mapping), "charges": charges}, indent=1)
