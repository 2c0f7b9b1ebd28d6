"""What an event costs between data sets that differ by several rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from riata.errors import InvalidArgument
from riata.privacy.accountants import spent
from riata.privacy.budget import REPLACE_PERSON, Budget
from riata.privacy.calibrate import calibrate
from riata.privacy.events import (
    BoundedRange,
    Gaussian,
    LaplaceMax,
    ObjectivePerturbed,
    Pure,
    SampledGaussian,
    Unprotected,
    ZeroConcentrated,
    compose,
    of_group,
)

EVENTS = [
    Pure(0.3), BoundedRange(0.3), LaplaceMax(0.3), Gaussian(4.0), ZeroConcentrated(0.02),
    Unprotected(), SampledGaussian(4.0, 0.1), ObjectivePerturbed(4.0, 0.05),
]  # fmt: skip


def test_one_row_is_one_row():
    for event in EVENTS:
        assert of_group(event, 1) is event


@pytest.mark.parametrize("rows", [2, 3, 10])
def test_groups_cost_what_the_proofs_say(rows):
    near = pytest.approx
    assert of_group(Pure(0.3), rows).epsilon == near(0.3 * rows)
    assert of_group(BoundedRange(0.3), rows).epsilon == near(0.3 * rows)
    assert of_group(LaplaceMax(0.3), rows) == LaplaceMax(of_group(Pure(0.3), rows).epsilon)
    assert of_group(Gaussian(4.0), rows).noise_multiplier == near(4.0 / rows)
    assert of_group(ZeroConcentrated(0.02), rows).rho == near(0.02 * rows**2)
    assert of_group(SampledGaussian(4.0, 0.1), rows) == of_group(Gaussian(4.0), rows)
    perturbed = of_group(ObjectivePerturbed(4.0, 0.05), rows)
    assert (perturbed.noise_multiplier, perturbed.stretch) == near((4.0 / rows, 0.05 * rows))
    assert of_group(Unprotected(), rows) == Unprotected()
    whole = compose((Pure(0.3), 5), (compose((Gaussian(4.0), 2)), 3))
    assert of_group(whole, rows) == compose(
        (of_group(Pure(0.3), rows), 5), (compose((of_group(Gaussian(4.0), rows), 2)), 3)
    )


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_a_group_never_costs_less_than_its_rows_one_after_the_other_would(event):
    """And rounding only ever makes the cost larger."""
    if isinstance(event, Unprotected):
        return
    delta = 0.0 if isinstance(event, Pure) else 1e-6
    costs = [spent(of_group(event, rows), delta).epsilon for rows in range(1, 8)]
    assert np.all(np.diff(costs) > 0)
    # A group of six is a group of two groups of three.
    assert spent(of_group(of_group(event, 3), 2), delta).epsilon >= costs[5] * (1 - 1e-12)


def test_groups_of_a_randomised_answer_come_close_to_the_bound():
    """k people in a row who each answer with probability e^eps / (1 + e^eps): the bound is met."""
    epsilon, rows = 0.7, 4
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    ratio = (keep / (1 - keep)) ** rows  # all of a person's answers, released one by one
    assert math.log(ratio) == pytest.approx(of_group(Pure(epsilon), rows).epsilon)


def test_groups_of_a_gaussian_sum_meet_the_bound():
    """The hockey-stick divergence of two normals that are `rows` sensitivities apart."""
    z, rows, delta = 3.0, 4, 1e-5
    epsilon = spent(of_group(Gaussian(z), rows), delta).epsilon
    shift = rows / z

    def exact(eps):
        return norm.cdf(shift / 2 - eps / shift) - math.exp(eps) * norm.cdf(
            -shift / 2 - eps / shift
        )

    assert exact(epsilon) <= delta * (1 + 1e-6)
    assert exact(0.999 * epsilon) > delta


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_noise_for_people_spends_their_budget(delta):
    event = (lambda s: Pure(s)) if delta == 0 else (lambda s: compose((BoundedRange(s), 30)))
    one = calibrate(event, Budget(1.0, delta, REPLACE_PERSON, 1))
    five = calibrate(event, Budget(1.0, delta, REPLACE_PERSON, 5))
    assert five == pytest.approx(one / 5, rel=1e-9)
    assert 1 - 1e-9 <= spent(of_group(event(five), 5), delta).epsilon <= 1.0


@pytest.mark.parametrize("rows", [0, -1, 1.5, True, "2"])
def test_a_person_has_a_whole_number_of_rows(rows):
    with pytest.raises(InvalidArgument, match="rows_of_a_person"):
        Budget(1.0, 0.0, REPLACE_PERSON, rows)


def test_rows_of_a_person_are_of_people():
    with pytest.raises(InvalidArgument, match="replace-person"):
        Budget(1.0, 0.0, "replace-one", 2)
    assert str(Budget(1.0, 0.0, REPLACE_PERSON, 3)).endswith("replace-person of 3 rows")
    assert Budget(1.5, 0.0, REPLACE_PERSON, 3).row_epsilon == 0.5
