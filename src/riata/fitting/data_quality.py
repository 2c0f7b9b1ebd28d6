"""What is wrong with the rows of a source, counted with noise: an extra release of a fit.

Misspelt classes or bounds in other units make a fit learn nothing, and nobody may look at the rows
to find out why. The proof is in docs/privacy/data_quality.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from scipy.special import ndtri

from riata.curator import Curator
from riata.data.schema import Schema
from riata.data.schema.flags import FlaggedSchema
from riata.engines.choice import RowSource, open_engine
from riata.errors import InvalidArgument
from riata.fitting.extra_planning import DATA_QUALITY
from riata.mechanisms.engine import Engine
from riata.preparation import Preparation
from riata.queries import FlagCounts
from riata.solvers.adaptive_budget import noise_std
from riata.solvers.plan import Plan

#: A part is told if it exceeds what noise explains, and this part of the rows: of labels, and of
#: cells of a column. In one of so many fits on good rows, noise alone is told.
OF_LABELS, OF_CELLS, FALSE_ALARMS = 0.02, 0.05, 1 / 500

UNREADABLE = "is missing or cannot be read"

#: How the cells of a kind of column are written, for people whose cells cannot be read.
WRITTEN = {
    "number": "numbers as 1234.5, without a decimal comma, a sign between thousands, a percent "
    "sign or a unit",
    "date": "dates as 2026-01-31, or as format = ... in the schema says",
    "yes-no": "yes and no as yes, no, true, false, 1 or 0",
}
#: The kinds that are read in the same way as another.
_READ_AS = {"count": "number"}

#: Columns are blank together if the parts that are missing differ by no more than noise and this.
_ALIKE = 0.02


@dataclass(frozen=True)
class DataQuality:
    """About which part of the rows is missing or outside, for each column: released with noise.

    Attributes
    ----------
    columns : tuple of str
        The columns of the file that features are made of.
    missing, outside : tuple of float
        The part of the rows in which a cell is missing or unreadable, and in which it is outside
        the bounds or none of the choices. With noise, so they may be below 0.
    error : float
        The standard deviation of the noise of each.
    target : str
    target_missing, target_outside, target_error : float
        The same of the target. Outside are labels that are none of the classes.
    classifies : bool
        Whether the target has classes.
    kinds : tuple of str
        The kind of each column; empty in models of earlier versions.
    """

    columns: tuple[str, ...]
    missing: tuple[float, ...]
    outside: tuple[float, ...]
    error: float
    target: str
    target_missing: float
    target_outside: float
    target_error: float
    classifies: bool
    kinds: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        several = (self.columns, self.missing, self.outside)
        good = all(type(each) is tuple and len(each) == len(self.columns) for each in several)
        numbers = [self.error, self.target_missing, self.target_outside, self.target_error]
        if good:
            numbers += [*self.missing, *self.outside]
        good = good and all(type(each) is float and math.isfinite(each) for each in numbers)
        good = good and type(self.kinds) is tuple and len(self.kinds) in (0, len(self.columns))
        names = (*self.columns, self.target, *self.kinds) if good else ()
        good = good and all(type(name) is str for name in names)
        if not good or type(self.classifies) is not bool:
            raise InvalidArgument("These are no counts of what is wrong with columns of a file.")

    @property
    def sentences(self) -> tuple[str, ...]:
        """What stands out from the noise, in words; the target first."""
        said, blank = self._of_target(), self._blank
        if blank:
            said.append(
                f"{_about(blank)} of the rows are blank in every column: lines of the file are "
                "blank or have another number of fields than the first one, or it has fewer rows "
                "than the schema says."
            )
        for name, kind, missing, outside in self._by_column():
            if self._stands_out(missing, self.error, OF_CELLS) and not blank:
                said.append(f"{_about(missing)} of {name!r} {UNREADABLE}.")
            if self._stands_out(outside, self.error, OF_CELLS):
                said.append(f"{_about(outside)} of {name!r} {_outside(kind)}.")
        return tuple(said)

    @property
    def hint(self) -> str:
        """How cells are written, for the columns that stand out as unreadable; "" for none."""
        kinds = [
            kind
            for _, kind, missing, _ in self._by_column()
            if self._stands_out(missing, self.error, OF_CELLS) and not self._blank
        ]
        if not self.classifies and self._stands_out(
            self.target_missing, self.target_error, OF_LABELS
        ):
            kinds.append("number")
        read = dict.fromkeys(_READ_AS.get(kind, kind) for kind in kinds)
        written = [WRITTEN[kind] for kind in read if kind in WRITTEN]
        if not written:
            return ""
        return f"If the cells are there, they have to be written otherwise: {'; '.join(written)}."

    def _by_column(self) -> Iterator[tuple[str, str, float, float]]:
        """The name and kind of each column, and the parts that are missing and outside."""
        kinds = self.kinds or ("",) * len(self.columns)
        return zip(self.columns, kinds, self.missing, self.outside, strict=True)

    @property
    def _blank(self) -> float:
        """The part of the rows that are blank as far as the noise shows: 0 where columns differ."""
        if len(self.columns) < 2:
            return 0.0
        least, most = min(self.missing), max(self.missing)
        alike = most - least < 6 * self.error + _ALIKE
        return least if alike and self._stands_out(least, self.error, OF_CELLS) else 0.0

    def _of_target(self) -> list[str]:
        said, error = [], self.target_error
        if self._stands_out(self.target_outside, error, OF_LABELS):
            what = "is none of the classes: check the spelling"
            what = what if self.classifies else "is outside of the bounds: check the units"
            said.append(f"{_about(self.target_outside)} of {self.target!r} {what}.")
        if self._stands_out(self.target_missing, error, OF_LABELS):
            said.append(f"{_about(self.target_missing)} of {self.target!r} {UNREADABLE}.")
        return said

    def _stands_out(self, part: float, error: float, least: float) -> bool:
        counts = 2 * len(self.columns) + 2
        return part > max(-float(ndtri(FALSE_ALARMS / counts)) * error, least)

    def __str__(self) -> str:
        exact = f"Parts of the rows, with noise of {self.error:.2g} ({self.target_error:.2g} for "
        return "\n".join([*(self.sentences or ("Nothing stands out.",)), exact + "the target)."])


def _outside(kind: str) -> str:
    """What is wrong with cells outside of what a column of this kind may hold."""
    if kind == "choice":
        return "is none of its choices: if that is more than you expect, check the spelling"
    return "is outside of its bounds: check the units"


def _about(part: float) -> str:
    return f"About {min(part, 1.0):.0%}"


def check_countable(schema: Schema | None) -> None:
    """Raise unless what is wrong with the rows can be counted."""
    if schema is None or schema.unnamed:
        raise InvalidArgument(
            "data_quality=True needs a source whose schema names the columns: only then it is "
            "known what a good cell is. Fit from riata.read(...), or use data_quality=False."
        )


def quality_views(
    plan: Plan, schema: Schema | None, rows: RowSource, engine: str
) -> dict[str, Callable[[], Engine]]:
    """The view of the rows that is counted, if the plan pays for it: for `Curator.open`."""
    if DATA_QUALITY not in plan.extra_releases or schema is None:
        return {}
    flagged = FlaggedSchema.of(schema)

    def read() -> Engine:
        return open_engine(engine, Preparation(flagged.bounds), rows.with_schema(flagged.schema))

    return {DATA_QUALITY: read}


def release_data_quality(plan: Plan, schema: Schema | None, curator: Curator) -> DataQuality | None:
    """Count what is wrong with the rows, if the plan pays for it."""
    if DATA_QUALITY not in plan.extra_releases or schema is None:
        return None
    flagged, problem = FlaggedSchema.of(schema), plan.problem
    bounds = flagged.bounds
    query = FlagCounts(bounds, len(bounds.x), problem.n_rows, problem.adjacency)
    mechanism = plan.extra_releases[DATA_QUALITY].mechanism
    parts = curator.release(query, mechanism, view=DATA_QUALITY).reshape(-1, 2)
    error, weight = noise_std(mechanism, query), flagged.weight
    target = schema.target
    assert target is not None
    return DataQuality(
        columns=flagged.columns,
        missing=tuple(map(float, parts[:-1, 0])),
        outside=tuple(map(float, parts[:-1, 1])),
        error=float(error),
        target=target.name,
        target_missing=float(parts[-1, 0] / weight),
        target_outside=float(parts[-1, 1] / weight),
        target_error=float(error / weight),
        classifies=target.bounds is None,
        kinds=flagged.kinds,
    )
