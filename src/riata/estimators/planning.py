"""The plan of a fit of a source, before it is charged."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from riata.data.source import Source
from riata.solvers import Plan


def planned_for(estimator: Any, source: Source) -> Plan:
    """What `estimator.fit(source)` would do and cost. Reads no row, charges nothing.

    The number of rows, or of people, is public. It is counted if the schema does not say it.
    """
    model = clone(estimator)
    job = model._job(source, None)
    return model._planned(job.losses, job.bounds, *job.shape, job.rows_of_a_person)[1]
