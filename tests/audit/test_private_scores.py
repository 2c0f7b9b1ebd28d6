"""Private scores of a model: neighbours of people are told apart no better than is claimed.

`epsilon_lower_bound` has a false-alarm rate of 1e-9 over the choice of the seeds, which are fixed.
The broken twin charges for one row where a person has three.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from riata import PrivateLasso, read
from riata.audit import epsilon_lower_bound
from riata.engines.choice import Arrays
from riata.evaluation import plan_score
from riata.evaluation.private import run_score
from riata.mechanisms.noise import Noise
from riata.privacy.budget import Budget
from riata.privacy.calibrate import calibrate
from riata.solvers.adaptive_budget import measurement_at

pytestmark = pytest.mark.long

EPSILON, ROWS_OF_A_PERSON, DRAWS = 1.0, 3, 1500
SCHEMA = {
    "features": [{"name": "a", "kind": "number", "bounds": [-1, 1]}],
    "target": {"name": "t", "bounds": [-1, 1]},
    "person": "who",
    "rows_of_a_person": ROWS_OF_A_PERSON,
}


def neighbours():
    """Two tables of two people; all rows of one of them are right, or as wrong as can be."""
    rows = pd.DataFrame({"a": 1.0, "t": 1.0, "who": np.repeat([0, 1], ROWS_OF_A_PERSON)})
    return rows, rows.assign(t=np.where(rows["who"] == 0, -1.0, 1.0))


def planned_pair():
    ours, theirs = neighbours()
    model = PrivateLasso(1.0, 1e-6).fit(read(ours, SCHEMA))
    model.coef_, model.intercept_ = np.array([1.0]), 0.0
    return [plan_score(model, read(each, SCHEMA), epsilon=EPSILON, delta=0.0)
            for each in (ours, theirs)]  # fmt: skip


def shown(pair):
    pair = [replace(one, rows=Arrays(*one.rows.load())) for one in pair]
    draws = [
        [run_score(planned, Noise(2 * seed + side)).value for seed in range(DRAWS)]
        for side, planned in enumerate(pair)
    ]
    return epsilon_lower_bound(*draws, failure=1e-9, ordered=True)


def test_a_score_keeps_its_epsilon_for_a_person():
    pair = planned_pair()
    assert pair[0].spent.epsilon <= EPSILON
    assert EPSILON / 3 < shown(pair) <= EPSILON


def test_a_score_that_forgets_the_rows_of_a_person_is_caught():
    strength = calibrate(lambda amount: measurement_at(amount, True).event, Budget(EPSILON, 0.0))
    broken = [replace(one, mechanism=measurement_at(strength, True)) for one in planned_pair()]
    assert shown(broken) > EPSILON
