"""Counts of what is wrong with cells: no row changes them by more than Theorem 1 says."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from riata import Bounds, PrivateLasso, Schema, read
from riata.curator import Curator
from riata.data.schema.flags import FlaggedSchema
from riata.engines.choice import open_engine
from riata.errors import BudgetExceeded
from riata.fitting.rows import SourceRows
from riata.grid import X_STEPS
from riata.losses import Squared
from riata.mechanisms import GaussianMechanism, PublicAnswer
from riata.mechanisms.noise import Noise
from riata.preparation import Preparation
from riata.privacy.budget import ADD_REMOVE, REPLACE_LABEL, REPLACE_ONE
from riata.privacy.events import Gaussian
from riata.problem import Problem
from riata.queries import DesignCurve, DesignRows, FlagCounts, Whitening
from riata.sets import L1Ball
from riata.vectors import Vector

SCHEMA = Schema.from_table(
    {
        "features": [
            {"name": "age", "kind": "number", "bounds": [0, 100]},
            {"name": "visits", "kind": "count", "most": 20},
            {"name": "ward", "kind": "choice", "choices": ["a", "b"]},
            {"name": "day", "kind": "date", "bounds": ["2013-01-01", "2013-12-31"]},
            {"name": "note", "kind": "text", "buckets": 8},
            {"kind": "interaction", "of": ["age", "ward"]},
        ],
        "target": {"name": "y", "classes": ["no", "yes"]},
    }
)
FLAGGED = FlaggedSchema.of(SCHEMA)
GOOD = ("50", "3", "a", "2013-05-17", "a fall", "no")
MISSING, OUTSIDE = ("",) * 6, ("1e999", "-1", "c", "2999-01-01", "a", "Yes")
HOSTILE = [
    GOOD, MISSING, OUTSIDE, ("nan",) * 6, ("\0",) * 6, ("x" * 500,) * 6, ("-inf",) * 6,
    ("0", "0", "b", "2013-01-01", "", "yes"), ("5", "", "c", "", "", "Yes"), ("1_0",) * 6,
    ("100.0001", "20", "A", "2013-12-31T23:59:59", "w " * 99, "YES"),
]  # fmt: skip
N = 12


def frame(rows):
    return pd.DataFrame(rows, columns=["age", "visits", "ward", "day", "note", "y"], dtype=object)


def rows_with(row):
    return [GOOD] * (N // 2) + [row] + [MISSING] * (N - N // 2 - 1)


def query(adjacency=REPLACE_ONE, n_rows=N):
    return FlagCounts(FLAGGED.bounds, 12, n_rows, adjacency)


def total(rows, engine="numpy"):
    source = SourceRows(read(frame(rows), SCHEMA), False).with_schema(FLAGGED.schema)
    opened = open_engine(engine, Preparation(FLAGGED.bounds), source)
    try:
        return [int(each) for each in opened.total(query())]
    finally:
        opened.close()


def change(one, other, unit):
    return [
        Fraction(float(u)) * (a - b)
        for a, b, u in zip(one, other, np.broadcast_to(unit, len(one)), strict=True)
    ]


def test_what_is_counted():
    one = dict(zip(FLAGGED.schema.feature_names, total([OUTSIDE, MISSING, GOOD]), strict=True))
    assert one["age missing"] == one["age outside"] == X_STEPS
    assert one["note missing"] == X_STEPS
    assert one["note outside"] == 0
    assert one["y missing"] == one["y outside"] == X_STEPS  # in steps of its weight
    assert FLAGGED.columns == ("age", "visits", "ward", "day", "note")
    assert FLAGGED.weight == 3.0


@pytest.mark.parametrize("engine", ["scan", "disk"])
def test_every_engine_counts_the_same(engine):
    assert total(HOSTILE, engine) == total(HOSTILE)


def test_no_replaced_row_changes_more_than_its_bound():
    asked, totals = query(), [total(rows_with(row)) for row in HOSTILE]
    l2, l1 = Fraction(asked.sensitivity("l2")) ** 2, Fraction(asked.sensitivity("l1"))
    largest = Fraction(0)
    for one in totals:
        for other in totals:
            moved = change(one, other, asked.unit)
            assert sum(v * v for v in moved) <= l2
            assert sum(map(abs, moved)) <= l1
            largest = max(largest, sum(v * v for v in moved))
    assert math.sqrt(largest / l2) > 0.96  # 14 + 13 of 2 * 14: texts are never outside


def test_no_added_row_changes_more_than_its_bound():
    asked = query(ADD_REMOVE)
    bound = Fraction(asked.sensitivity("l2")) ** 2
    sizes = []
    for row in HOSTILE:
        moved = change(total([*rows_with(GOOD)[:-1], row]), total(rows_with(GOOD)[:-1]), asked.unit)
        sizes.append(sum(v * v for v in moved))
        assert sizes[-1] <= bound
    assert max(sizes) / bound > 0.99


def test_flags_that_say_too_much_are_cut():
    # As if both flags of each pair were set, and as numbers of any size.
    x = np.array([[1e300] * 12, [-1.0] * 12, [np.nan] * 12, [9.0] * 12])
    steps = FLAGGED.bounds.grid_x(x)
    lengths = np.sqrt(np.square(steps / X_STEPS * FLAGGED.bounds.x).sum(axis=1))
    assert lengths.max() <= FLAGGED.bounds.max_length
    assert steps.min() >= 0


def test_rows_of_flags_are_not_cut():
    for row in HOSTILE:
        steps = total([row])
        assert {*steps} <= {0, X_STEPS}


def test_bounds_that_allow_negative_flags_are_refused():
    with pytest.raises(ValueError, match="not negative"):
        FlagCounts(Bounds(1.0, 1.0), 3, 10, REPLACE_ONE)


def flags_of(source):
    return open_engine("numpy", Preparation(FLAGGED.bounds), source.with_schema(FLAGGED.schema))


def test_another_view_of_the_rows_is_paid_for_as_any_release():
    source, mechanism = SourceRows(read(frame(HOSTILE), SCHEMA), False), GaussianMechanism(2.0)
    curator = Curator(None, Gaussian(2.0), Noise(0), views={"flags": flags_of(source)})
    asked = query(n_rows=len(HOSTILE))
    assert curator.release(asked, mechanism, view="flags").shape == (12,)
    with pytest.raises(BudgetExceeded):
        curator.release(asked, mechanism, view="flags")


def test_no_answer_about_flags_is_free_where_rows_are_public():
    """Flags of the target are columns there: an exact answer would tell which label is good."""
    source = SourceRows(read(frame(HOSTILE), SCHEMA), False)
    curator = Curator(None, Gaussian(2.0), Noise(0), views={"flags": flags_of(source)})
    problem = Problem(Squared(), L1Ball(1.0), FLAGGED.bounds, len(HOSTILE), 12, REPLACE_LABEL)
    rows = DesignRows(Whitening.of(np.eye(12), np.zeros(12)), 1.0, 0.0, 5.0)
    asked = DesignCurve(problem, Vector.zero(12), rows)
    with pytest.raises(ValueError, match="may show targets"):
        curator.release(asked, PublicAnswer(), view="flags")


def test_a_view_that_the_curator_was_not_opened_with_is_refused():
    """Nothing is read and nothing is taken: the code of a run's rows knows nothing about it."""
    source, opened = SourceRows(read(frame(HOSTILE), SCHEMA), False), []

    def read_rows():
        opened.append("rows")

    def read_flags():
        opened.append("flags")
        return flags_of(source)

    curator = Curator.open(
        Gaussian(2.0), read=read_rows, views={"flags": read_flags}, noise=Noise(0),
        adjacency=REPLACE_ONE,
    )  # fmt: skip
    assert opened == ["rows", "flags"]
    asked, mechanism = query(n_rows=len(HOSTILE)), GaussianMechanism(2.0)
    with pytest.raises(ValueError, match="no view 'others' of the rows"):
        curator.release(asked, mechanism, view="others")
    with pytest.raises(TypeError):
        curator.release(asked, mechanism, read=read_flags)
    curator.release(asked, mechanism, view="flags")
    assert opened == ["rows", "flags"]  # no view is read twice: a file may have changed


def test_a_plan_with_counts_spends_the_budget_and_not_more():
    for delta in (1e-6, 0.0):
        model = PrivateLasso(1.0, delta, data_quality=True)
        model.schema_ = Schema.from_table(
            {**SCHEMA.table(), "target": {"name": "y", "bounds": [0, 1]}}
        )
        planned = model.plan(5_000, SCHEMA.n_features)
        assert "data quality" in planned.extra_releases
        assert planned.spent.epsilon <= 1.0
        assert planned.spent.epsilon > 1.0 - 1e-6
        assert any(line.startswith("data quality: ") for line in planned.releases)
