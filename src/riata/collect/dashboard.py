"""What the organiser sees: counts, forecasts and the model. Nothing about a single report."""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
from pathlib import Path
from typing import Any

from riata.local.task import Task


class Dashboard:
    """The facts of the organiser's page, for who knows its key.

    `people` reports are expected, 0 if nobody knows; `riata collect learn` writes the `model`.
    """

    def __init__(self, people: int, model: Path | None) -> None:
        self.key = secrets.token_urlsafe(18)
        self._people = people
        self._model = model
        self._forecasts: dict[int, dict[str, Any]] = {}
        self._lock = asyncio.Lock()

    def authorizes(self, authorization: bytes) -> bool:
        """Whether a header `Authorization: Bearer KEY` holds the key, in constant time."""
        scheme, _, key = authorization.partition(b" ")
        same = hmac.compare_digest(key.strip(b" "), self.key.encode())
        return same and scheme.lower() == b"bearer"

    async def facts(self, task: Task, reports: int, refused: int) -> dict[str, Any]:
        """Plain data for the page."""
        return {
            "title": task.title,
            "kind": task.kind,
            "epsilon": task.epsilon,
            "deadline": task.deadline,
            "reports": reports,
            "expected": self._people,
            "refused": refused,
            "now": await self._forecast(task, reports),
            "then": await self._forecast(task, max(self._people, reports)),
            "model": self._model_facts(),
        }

    async def _forecast(self, task: Task, people: int) -> dict[str, Any] | None:
        """The plan's forecast for about so many people: two digits of the number are enough."""
        if people < 1:
            return None
        rounded = int(float(f"{people:.1e}"))
        async with self._lock:
            if rounded not in self._forecasts:
                plan = await asyncio.to_thread(task.plan, rounded)
                self._forecasts[rounded] = {
                    "people": rounded, "share": plan.share, "low": plan.interval[0],
                    "high": plan.interval[1], "advice": plan.advice,
                }  # fmt: skip
        return self._forecasts[rounded]

    def _model_facts(self) -> dict[str, Any] | None:
        if self._model is None:
            return None
        try:
            held = json.loads(
                self._model.read_text(encoding="utf-8"), parse_constant=_reject_constant
            )
            return {key: held[key] for key in ("reports", "signal", "columns") if key in held}
        except (OSError, ValueError, TypeError):
            return None  # not there, or not a model


def _reject_constant(constant: str) -> None:
    raise ValueError(constant)
