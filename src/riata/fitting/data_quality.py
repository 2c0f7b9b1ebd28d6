"""What is wrong with the rows of a source, counted with noise: an extra release of a fit.

Misspelt classes or bounds in other units make a fit learn nothing, and nobody may look at the rows
to find out why. The proof is in docs/privacy/data_quality.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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

#: What to look for where cells cannot be read.
WRITTEN = (
    "If they are there, they are written otherwise than they are read: numbers as 1234.5, without "
    "a decimal comma, a percent sign or a unit, and dates as 2026-01-31, or as format = ... in the "
    "schema says."
)


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

    def __post_init__(self) -> None:
        several = (self.columns, self.missing, self.outside)
        good = all(type(each) is tuple and len(each) == len(self.columns) for each in several)
        numbers = [self.error, self.target_missing, self.target_outside, self.target_error]
        if good:
            numbers += [*self.missing, *self.outside]
        good = good and all(type(each) is float and math.isfinite(each) for each in numbers)
        good = good and all(type(name) is str for name in (*self.columns, self.target))
        if not good or type(self.classifies) is not bool:
            raise InvalidArgument("These are no counts of what is wrong with columns of a file.")

    @property
    def sentences(self) -> tuple[str, ...]:
        """What stands out from the noise, in words; the target first."""
        said = self._of_target()
        for name, missing, outside in zip(self.columns, self.missing, self.outside, strict=True):
            if self._stands_out(missing, self.error, OF_CELLS):
                said.append(f"{_about(missing)} of {name!r} {UNREADABLE}.")
            if self._stands_out(outside, self.error, OF_CELLS):
                said.append(
                    f"{_about(outside)} of {name!r} is outside of its bounds or choices: check "
                    "units and spelling in the schema."
                )
        return tuple(said)

    @property
    def hint(self) -> str:
        """What to look for where cells cannot be read; "" where none stand out."""
        return WRITTEN if any(each.endswith(f"{UNREADABLE}.") for each in self.sentences) else ""

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
    )
