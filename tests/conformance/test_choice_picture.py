"""The picture in docs/choose.md leads to the solvers that "auto" takes."""

import importlib.util
import itertools
import math
import re
import sys
from pathlib import Path

import pytest
from scipy.stats import norm

from riata import Bounds, Budget
from riata.losses import Logistic, Squared
from riata.problem import Problem
from riata.sets import GroupL1Ball, L1Ball, L2Ball, LpBall, Polytope, Simplex, SparseBall
from riata.solvers import RULES, SOLVERS, rule_for

ROOT = Path(__file__).parents[2]


@pytest.fixture
def picture(monkeypatch):
    spec = importlib.util.spec_from_file_location("draw_choice", ROOT / "tools" / "draw_choice.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "draw_choice", module)  # dataclasses look it up
    spec.loader.exec_module(module)
    return module


def leaf(solver):
    """How a solver is called in the picture: by its class if it cannot be asked for by name."""
    return solver.name if SOLVERS.get(solver.name) is solver else solver.__name__


def test_the_leaves_are_the_solvers_of_the_rules(picture):
    leaves = re.findall(r'data-solver="([^"]+)"', picture.PICTURE.read_text(encoding="utf-8"))
    assert leaves == [leaf(rule.solver) for rule in RULES]


def test_the_file_is_what_the_program_draws(picture):
    assert picture.PICTURE.read_text(encoding="utf-8") == picture.drawn()


def test_every_leaf_has_a_page(picture):
    pages = [rung.page for ladder in picture.LADDERS for rung in ladder.rungs]
    assert all((ROOT / "docs" / "algorithms" / f"{page}.md").exists() for page in pages)


def few_rows(p, b):
    return is_below(400 if isinstance(p.loss, Logistic) else 75, p, b)


def is_below(times, p, b):
    """Whether a release of strength times √columns / rows is within the budget."""
    mu = times * p.n_features**0.5 / p.n_rows
    below = norm.cdf(-b.epsilon / mu + mu / 2)
    return below - math.exp(b.epsilon) * norm.cdf(-b.epsilon / mu - mu / 2) > b.delta


def few_columns(p, b):
    """The footnote: at most 128 columns, and for numbers not 33 or more with so many rows."""
    searched = (
        p.bounds.norm != "l2"
        and p.n_features > 32
        and 8 <= p.n_rows * b.epsilon / p.n_features < 100
    )
    return p.n_features <= 128 and not (searched and isinstance(p.loss, Squared))


#: What the words of each question mean, read without the code of the rules.
MEANS = {
    "Epsilon is infinite: nothing is protected": lambda p, b: b.epsilon == float("inf"),
    'Rows have a bound on their|length, norm="l2", and delta > 0': lambda p, b: (
        p.bounds.norm == "l2" and b.delta > 0
    ),
    "Each entry has a bound, or delta is 0": lambda p, b: True,
    "The set is a|SparseBall?": lambda p, b: isinstance(p.set, SparseBall),
    "L1Ball or L2Ball, labels,|no entry below 0, more|columns than rows / 3?": lambda p, b: (
        isinstance(p.set, L1Ball | L2Ball)
        and isinstance(p.loss, Logistic)
        and p.bounds.nonnegative
        and 3 * p.n_features > p.n_rows
    ),
    "L1Ball or L2Ball, at most|512 columns, rows · μ below|75 √columns (labels: 400)?": (
        lambda p, b: isinstance(p.set, L1Ball | L2Ball) and p.n_features <= 512 and few_rows(p, b)
    ),
    "L1Ball or L2Ball, at most|512 columns?": lambda p, b: (
        isinstance(p.set, L1Ball | L2Ball) and p.n_features <= 512
    ),
    "L1Ball or L2Ball, delta > 0,|few columns*, rows · μ below|75 √columns (labels: 400)?": (
        lambda p, b: (
            isinstance(p.set, L1Ball | L2Ball)
            and b.delta > 0
            and few_columns(p, b)
            and few_rows(p, b)
        )
    ),
    "L1Ball or L2Ball, delta > 0,|few columns*?": lambda p, b: (
        isinstance(p.set, L1Ball | L2Ball) and b.delta > 0 and few_columns(p, b)
    ),
    "L1Ball or L2Ball, numbers|or columns at most rows / 3?": lambda p, b: (
        isinstance(p.set, L1Ball | L2Ball)
        and (isinstance(p.loss, Squared) or 3 * p.n_features <= p.n_rows)
    ),
    "L1Ball or L2Ball, delta > 0,|labels, no entry below 0,|rows · μ below 25 √columns?": (
        lambda p, b: (
            isinstance(p.set, L1Ball | L2Ball)
            and b.delta > 0
            and isinstance(p.loss, Logistic)
            and p.bounds.nonnegative
            and is_below(25, p, b)
        )
    ),
    "L1Ball or L2Ball, delta 0,|few columns*, more than .13|√(rows · epsilon) (labels: .065)?": (
        lambda p, b: (
            isinstance(p.set, L1Ball | L2Ball)
            and b.delta == 0
            and few_columns(p, b)
            and p.n_features
            > (0.065 if isinstance(p.loss, Logistic) else 0.13) * (p.n_rows * b.epsilon) ** 0.5
        )
    ),
    "L1Ball or L2Ball, columns|at most a quarter of|√(rows · min(epsilon, 1))?": (
        lambda p, b: (
            isinstance(p.set, L1Ball | L2Ball)
            and 16 * p.n_features**2 <= p.n_rows * min(b.epsilon, 1)
        )
    ),
    "L1Ball, L2Ball or|SparseBall?": lambda p, b: isinstance(p.set, L1Ball | L2Ball | SparseBall),
    "The set has vertices?|Simplex, Polytope": lambda p, b: isinstance(
        p.set, L1Ball | Simplex | Polytope
    ),
    "Delta > 0?": lambda p, b: b.delta > 0,
    "": lambda p, b: True,
}


def walked(picture, problem, budget):
    ladder = next(each for each in picture.LADDERS if MEANS[each.title](problem, budget))
    return next(rung.solver for rung in ladder.rungs if MEANS[rung.asks](problem, budget))


def test_the_questions_lead_where_the_rules_lead(picture):
    sets = [
        L1Ball(1.0), L2Ball(1.0), LpBall(1.5, 1.0), SparseBall(3, 1.0), Simplex(1.0),
        GroupL1Ball(groups=4, radius=1.0),
    ]  # fmt: skip
    bounds = [
        Bounds(x=1.0, y=1.0), Bounds(x=1.0, y=1.0, norm="l2"),
        Bounds(x=1.0, y=1.0, norm="l2", nonnegative=True), Bounds(x=1.0, y=1.0, nonnegative=True),
    ]  # fmt: skip
    budgets = [Budget(*pair) for pair in [(1.0, 1e-6), (0.1, 1e-6), (1.0, 0.0), (0.1, 0.0)]]
    budgets.append(Budget(float("inf"), 0.0))
    shapes = [(160_000, 100), (160_000, 101), (160_000, 32), (300, 100), (300, 101), (50, 1_000),
              (160_000, 129), (160_000, 512), (160_000, 513), (3_200, 32), (3_200, 33),
              (2_000, 100), (2_000, 33)]  # fmt: skip
    reached = set()
    for C, b, budget, (n, d), loss in itertools.product(
        sets, bounds, budgets, shapes, [Squared(), Logistic()]
    ):
        problem = Problem(loss, C, b, n_rows=n, n_features=d)
        expected = leaf(rule_for(problem, budget).solver)
        assert walked(picture, problem, budget) == expected, (C, b, budget, n, d, loss)
        reached.add(expected)
    assert reached == {leaf(rule.solver) for rule in RULES}
