"""`model.contrast`: weighted sums of coefficients, from what was released."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from riata import (
    Bounds,
    PrivateLasso,
    PrivateLogisticRegression,
    PrivatePoissonRegression,
    read,
)
from riata.errors import InvalidArgument

SCHEMA = {
    "features": [
        {"name": "age", "kind": "number", "bounds": [0, 100], "knots": 0},
        {"name": "ward", "kind": "choice", "choices": ["a", "b", "c"]},
    ],
    "target": {"name": "cost", "bounds": [0, 100]},
}


def people(seed, n=3_000):
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame({"age": rng.uniform(0, 100, n), "ward": rng.choice(["a", "b", "c"], n)})
    rows["cost"] = 20 + 0.5 * rows["age"] + 8 * (rows["ward"] == "b") + rng.normal(0, 5, n)
    return rows


@pytest.fixture(scope="module")
def by_schema():
    return PrivateLasso(3.0, 1e-6, random_state=0).fit(read(people(0), SCHEMA))


def test_the_difference_of_two_categories_is_known_and_neither_of_them_is(by_schema):
    (found,) = by_schema.contrast({"ward=b": 1, "ward=a": -1})
    names = list(by_schema.feature_names_in_)
    b, a = (by_schema.coef_[names.index(name)] for name in ("ward=b", "ward=a"))
    assert found.estimate == pytest.approx(b - a)
    assert abs(found.estimate - 8) < 4 * found.error < 4
    assert found.high - found.estimate == pytest.approx(stats.norm.ppf(0.975) * found.error)
    assert found.p == pytest.approx(2 * stats.norm.sf(abs(found.estimate / found.error)))
    assert math.isnan(found.ratio)
    assert math.isnan(by_schema.contrast({"ward=b": 1})[0].error)


@pytest.mark.not_quick
def test_intervals_of_differences_cover():
    """Of 30 fits with fixed seeds, two differences each."""
    inside = []
    for seed in range(30):
        model = PrivateLasso(2.0, 1e-6, random_state=seed).fit(read(people(seed), SCHEMA))
        for one, truth in (("b", 8.0), ("c", 0.0)):
            (found,) = model.contrast({f"ward={one}": 1, "ward=a": -1})
            if math.isfinite(found.error):
                inside.append(found.low <= truth <= found.high)
    assert len(inside) >= 30
    assert np.mean(inside) >= 0.85


def test_units_and_single_columns_are_those_of_the_summary(by_schema):
    term = {term.name: term for term in by_schema.summary().functions[0].terms}["age"]
    (found,) = by_schema.contrast({"age": 10})
    assert found.estimate == pytest.approx(10 * term.estimate)
    assert found.error == pytest.approx(10 * term.error)
    assert by_schema.contrast({0: 10})[0].error == found.error


def test_ratios_of_odds_and_rates():
    x = np.random.default_rng(0).uniform(-1, 1, (3_000, 2))
    labels = PrivateLogisticRegression(3.0, 1e-6, bounds=Bounds(1.0), random_state=0)
    labels.fit(x, x[:, 0] + 0.5 * np.random.default_rng(1).standard_normal(3_000) > 0)
    terms = {term.name: term for term in labels.summary(correction=None).functions[0].terms}
    (found,) = labels.contrast({0: 1})
    assert found.ratio == pytest.approx(terms["x[0]"].ratio)
    assert found.ratio_high == pytest.approx(terms["x[0]"].ratio_high)
    counts = np.random.default_rng(2).poisson(np.exp(x[:, 0]))
    rates = PrivatePoissonRegression(3.0, 1e-6, bounds=Bounds(1.0, 10.0), random_state=0)
    (found,) = rates.fit(x, counts).contrast({0: 1, 1: 1})
    assert found.ratio == pytest.approx(math.exp(found.estimate))
    assert found.ratio_low < found.ratio < found.ratio_high


def test_each_class_has_a_contrast_and_errors_without_covariances_are_bounds():
    model = PrivateLogisticRegression(1.0, bounds=Bounds(x=1.0), classes=["a", "b", "c"])
    model.fit(np.zeros((30, 2)), np.array(["a", "b", "c"] * 10))
    vars(model).pop("coef_covariance_", None)
    model.coef_ = np.array([[0.1, 0.2], [0.0, 0.0], [1.0, 0.1]])
    model.coef_error_ = np.array([[0.1, 0.1], [math.nan, math.nan], [0.2, math.nan]])
    found = model.contrast({0: 1, 1: -2})
    assert [each.label for each in found] == ["a", "b", "c"]
    assert [each.estimate for each in found] == pytest.approx([-0.3, 0.0, 0.8])
    assert found[0].error == pytest.approx(0.3)
    assert math.isnan(found[1].error)
    assert math.isnan(found[2].error)


def test_what_cannot_be_compared_is_refused(by_schema):
    with pytest.raises(InvalidArgument, match="dict"):
        by_schema.contrast("age")
    with pytest.raises(InvalidArgument, match="4 columns"):
        by_schema.contrast({"ward": 1})
    with pytest.raises(InvalidArgument, match="finite"):
        by_schema.contrast({"age": math.inf})
    with pytest.raises(InvalidArgument, match="neither"):
        by_schema.contrast({"weight": 1})
    with pytest.raises(InvalidArgument, match="empty"):
        by_schema.contrast({})
