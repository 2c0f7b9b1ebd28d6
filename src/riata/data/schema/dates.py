"""Dates and times: a trend between public bounds, parts of the calendar, and cycles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from riata.data.columns import Column, Dates
from riata.data.schema.features import Cell, Feature, Nonzeros

#: The parts of a date, each with the names of its columns.
PARTS: dict[str, tuple[str, ...]] = {
    "trend": ("trend",),
    "month": tuple(f"month={month}" for month in range(1, 13)),
    "weekday": tuple(f"weekday={day}" for day in ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")),
    "hour": tuple(f"hour={hour}" for hour in range(24)),
}
CYCLES = ("year", "week", "day")

#: No date is longer, as text.
_LONGEST = 64

#: The characters of a date without a time.
_DAY = len("2013-12-31")


@dataclass(frozen=True)
class Date(Feature):
    """A date, perhaps with a time: each part and each cycle of it has length 1 at most.

    `trend` is a number from -1 to 1 between the bounds, where dates outside are clipped; month,
    weekday and hour are one-hot columns. A cycle is a sine and a cosine. Missing and unreadable
    dates are all zeros.
    """

    bounds: tuple[str, str]
    parts: tuple[str, ...]
    cycles: tuple[str, ...]
    format: str = ""

    kind = "date"

    @property
    def names(self) -> list[str]:
        parts = [f"{self.name} {name}" for part in self.parts for name in PARTS[part]]
        waves = [f"{self.name} {cycle} {wave}" for cycle in self.cycles for wave in ("sin", "cos")]
        return parts + waves

    @property
    def n_columns(self) -> int:
        return sum(len(PARTS[part]) for part in self.parts) + 2 * len(self.cycles)

    @property
    def nonnegative(self) -> bool:
        return not self.cycles and "trend" not in self.parts

    @property
    def likely_entries(self) -> int:
        return len(self.parts) + 2 * len(self.cycles)

    @property
    def squared_length(self) -> int:
        return len(self.parts) + len(self.cycles)

    @property
    def units(self) -> tuple[np.ndarray, np.ndarray]:
        """The trend is in days, from the middle of the bounds."""
        scales, centres = super().units
        low, high = self._ends()
        places = [self.names.index(f"{self.name} trend")] if "trend" in self.parts else []
        scales[places] = (high - low) / timedelta(days=2)
        return scales, centres

    @property
    def meanings(self) -> tuple[str, ...]:
        named = {"trend": "of a trend, the change for one day, from the middle of the dates"}
        clock = "of a month, a weekday or an hour, the change against 0 for all others"
        waves = ("of a sine and a cosine, the swing of a cycle",) * bool(self.cycles)
        return (*dict.fromkeys(named.get(part, clock) for part in self.parts), *waves)

    def encode(self, column: Column) -> Nonzeros:
        seen, places = self._times(column)
        table, ends = np.zeros((len(seen), self.n_columns)), self._ends()
        for row, time in enumerate(seen):
            if time is not None:
                table[row] = self._encoded(time, *ends)
        return _rows_of(table, places)

    def _times(self, column: Column) -> tuple[list[datetime | None], np.ndarray]:
        """The different times, None for those that are missing, and the place of each row's."""
        if isinstance(column, Dates):
            return column.different()
        texts = column.texts()
        return [self.time(word) for word in texts.words], texts.codes

    def time(self, word: str | None) -> datetime | None:
        """The time that a text says, as the clock there shows it; None if it is none."""
        return read_time(word, self.format)

    def _encoded(self, time: datetime, low: datetime, high: datetime) -> list[float]:
        """The numbers of one time: by `math`, so that they depend on nothing else."""
        day = time.timetuple().tm_yday - 1
        hour = time.hour + (time.minute + time.second / 60) / 60
        found: list[float] = []
        for part in self.parts:
            if part == "trend":
                found.append(max(-1.0, min(1.0, 2 * ((time - low) / (high - low)) - 1)))
                continue
            place = {"month": time.month - 1, "weekday": time.weekday(), "hour": time.hour}[part]
            found += [float(place == k) for k in range(len(PARTS[part]))]
        turns = {"year": day / 366, "week": (time.weekday() + hour / 24) / 7, "day": hour / 24}
        for cycle in self.cycles:
            found += [math.sin(math.tau * turns[cycle]), math.cos(math.tau * turns[cycle])]
        return found

    def _ends(self) -> tuple[datetime, datetime]:
        """The first and the last time inside the bounds."""
        low, high = (read_time(end) for end in self.bounds)
        assert low is not None
        assert high is not None
        if len(self.bounds[1]) <= _DAY:  # all of the last day
            high = high.replace(hour=23, minute=59, second=59, microsecond=999_999)
        return low, high

    def cells(self, column: Column) -> np.ndarray:
        low, high = self._ends()
        seen, places = self._times(column)
        found = [
            Cell.MISSING if time is None else Cell.GOOD if low <= time <= high else Cell.OUTSIDE
            for time in seen
        ]
        each: np.ndarray = np.array(found, dtype=np.int64)[places]
        return each

    def lines(self) -> list[tuple[str, Any, str]]:
        own = [("format", self.format, "how dates are written")] if self.format else []
        return [
            ("bounds", list(self.bounds), "dates outside are clipped in the trend"),
            ("parts", list(self.parts), f"of {', '.join(PARTS)}"),
            ("cycles", list(self.cycles), f"of {', '.join(CYCLES)}"),
            *own,
        ]


def _rows_of(table: np.ndarray, places: np.ndarray) -> Nonzeros:
    """Rows that are lines of a table."""
    lines, which = np.nonzero(table)
    filled = np.bincount(lines, minlength=len(table))
    many = filled[places]
    within = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
    entries = np.repeat((np.cumsum(filled) - filled)[places], many) + within
    rows = np.repeat(np.arange(len(places)), many)
    return Nonzeros(rows, which[entries], table[lines, which][entries])


def read_time(word: str | None, form: str = "") -> datetime | None:
    """A time without its zone, from ISO 8601 or in a form of `strptime`. Never raises."""
    if word is None or len(word) > _LONGEST or not word.isascii():
        return None
    try:
        found = datetime.strptime(word, form) if form else datetime.fromisoformat(word)
    except (ValueError, OverflowError):
        return None
    return found.replace(tzinfo=None)
