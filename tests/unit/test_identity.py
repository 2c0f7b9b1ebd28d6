"""The identity of a run: whatever could change a release changes its digest.

The cases are generated from the constructors of all estimators, losses, sets, solvers, projections,
bounds and schemas, so that a parameter that is added and forgotten fails here. A mutant that drops
any one field from a canonical form, generated too, is noticed.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import functools
import inspect
import math
import os
import random
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import riata
import riata.estimators as estimators
import riata.losses as losses
import riata.projections as projections
import riata.sets as sets
import riata.solvers as solvers
from riata import Bounds, PrivateErm, PrivateLasso, PrivateLogisticRegression, Schema, identity
from riata.errors import InvalidArgument
from riata.estimators.base import PrivateLinearModel
from riata.fitting import WITHOUT_EFFECT, ExtraReleases, Request, plan
from riata.fitting.request import arguments_of
from riata.identity import canonical, digest
from riata.losses import Huber, Loss, Squared
from riata.privacy.budget import Budget
from riata.sets import ConstraintSet, L1Ball

pytestmark = pytest.mark.matrix(one_in=11)

RNG = np.random.default_rng(0)

CENTRAL = {
    name: kind
    for name in estimators.__all__
    if isinstance(kind := getattr(estimators, name), type) and issubclass(kind, PrivateLinearModel)
}


def other_than(value):
    """A value of the same kind that is not the same."""
    if value is None:
        return 0.123
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 2 + 1 if value < math.inf else 0.5
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, tuple):
        return (*value, 7.0)
    if isinstance(value, np.ndarray):
        changed = np.array(value, dtype=np.float64)
        changed.flat[-1] += 0.25
        return changed
    return f"not {value!r}"


def parameters():
    for name, kind in CENTRAL.items():
        for parameter in inspect.signature(kind.__init__).parameters:
            if parameter != "self":
                yield pytest.param(kind, parameter, id=f"{name}-{parameter}")


def made(kind, **how):
    needed = {"epsilon": 1.0, "delta": 1e-6, "bounds": Bounds(1.0, 1.0), "classes": [0, 1],
              "loss": Squared(), "set": L1Ball(1.0), "sparsity": 2}  # fmt: skip
    known = inspect.signature(kind.__init__).parameters
    return kind(**{k: v for k, v in {**needed, **how}.items() if k in known})


def request_of(model, x=None, y=None):
    x = np.zeros((40, 3)) if x is None else x
    y = np.zeros(x.shape[0]) if y is None else y
    return model.request(x, y)[0]


def name_of(request):
    return plan(request).identity().digest


@pytest.mark.parametrize(("kind", "parameter"), list(parameters()))
def test_every_constructor_argument_is_part_of_the_identity(kind, parameter):
    """Also one that nobody has thought of yet: arguments are taken from the constructor."""
    planned = plan(request_of(made(kind)))
    before = planned.identity().digest
    changed = made(kind)
    setattr(changed, parameter, other_than(getattr(changed, parameter)))
    how = {"seed": 5} if parameter == "random_state" else {"parameters": arguments_of(changed)}
    request = dataclasses.replace(planned.request, **how)
    after = dataclasses.replace(planned, request=request).identity().digest
    assert (after == before) == (parameter in WITHOUT_EFFECT)


@pytest.mark.parametrize(
    "field", [each.name for each in dataclasses.fields(Request) if each.name != "notes"]
)
def test_every_field_of_a_request_is_part_of_its_identity(field):
    """Also of one that no estimator made."""
    others = {
        "losses": (Huber(0.5),), "set": L1Ball(2.0), "bounds": Bounds(1.0, 2.0),
        "budget": Budget(2.0, 1e-6), "n_rows": 41, "n_features": 4, "solver": "peeling",
        "steps": 3, "fit_intercept": False, "extra_releases": ExtraReleases(balanced=True),
        "classes": np.array([0, 1]), "schema": COMPONENTS["Schema"], "seed": 5,
        "estimator": PrivateLasso, "parameters": {"radius": 2.0}, "unpenalized": (1,),
    }  # fmt: skip
    request = Request(
        (Squared(),), L1Ball(1.0), Bounds(1.0, 1.0), Budget(1.0, 1e-6), 40, 3, "frank-wolfe"
    )
    if field == "solver":
        others["solver"] = "gaussian-frank-wolfe"
        others["bounds"] = Bounds(1.0, 1.0, norm="l2")
        request = dataclasses.replace(request, bounds=others["bounds"])
    if field == "unpenalized":  # which Frank-Wolfe refuses
        request = dataclasses.replace(request, solver="greedy")
    if field == "joint_loss":  # of a solver that fits all classes together
        request = dataclasses.replace(
            request, losses=(losses.OneAgainstRest(losses.Logistic(), 1),) * 3, n_rows=400,
            solver="softmax-gradient", joint_loss=losses.Softmax(3),
        )  # fmt: skip
        others["joint_loss"] = losses.Softmax(4)
    after = dataclasses.replace(request, **{field: others[field]})
    assert name_of(after) != name_of(request)


def test_what_has_no_effect_is_a_short_list():
    assert set(WITHOUT_EFFECT) == {"engine", "ledger", "verbose"}


def components():
    """One object of every loss, set, solver and projection, and of bounds, budgets and schemas."""
    matrix = RNG.normal(size=(2, 4))
    special = {
        "OneAgainstRest": losses.OneAgainstRest(losses.Logistic(), 1),
        "Weighted": losses.Weighted(losses.OneAgainstRest(losses.Logistic(), 1), (1.0, 2.0)),
        "Softmax": losses.Softmax(3),
        "Cox": losses.Cox((0.5, 1.0), (0.2, 1.5)),
        "OrderedLogistic": losses.OrderedLogistic(3),
        "WeightedRows": losses.WeightedRows(losses.Poisson(4.0), 1.5, 2.0, 2.0),
        "Smoothed": losses.Smoothed(losses.Hinge(), 0.5),
        "GroupL1Ball": sets.GroupL1Ball([0, 0, 1, 1], 1.0),
        "LpBall": sets.LpBall(1.5, 1.0),
        "Polytope": sets.Polytope(RNG.normal(size=(5, 4))),
        "SparseBall": sets.SparseBall(2, 1.0),
        "GivenProjection": projections.GivenProjection(matrix),
    }
    for module, base in ((losses, Loss), (sets, ConstraintSet), (solvers, solvers.Solver)):
        for name in module.__all__:
            if name == "RowLoss":  # is made of code, which has no identity: test_row_losses.py
                continue
            kind = getattr(module, name)
            if isinstance(kind, type) and issubclass(kind, base) and not inspect.isabstract(kind):
                yield name, special.get(name) or kind()
    for name in ("GaussianProjection", "SparseSignProjection", "StructuredProjection"):
        yield name, getattr(projections, name)(2, 4, 0)
    yield "GivenProjection", special["GivenProjection"]
    yield "Bounds", Bounds(np.array([1.0, 2.0]), 3.0)
    yield "Budget", Budget(1.0, 1e-6)
    yield "Schema", Schema.from_table({
        "person": "id", "rows_of_a_person": 3, "people": 9, "ignore": ["z"], "unpenalized": ["b"],
        "features": [
            {"name": "a", "kind": "number", "bounds": [0, 1]},
            {"name": "b", "kind": "choice", "choices": ["u", "v"]},
            {"name": "t", "kind": "text", "buckets": 16},
            {"name": "q", "kind": "yes-no"},
        ],
        "target": {"name": "y", "bounds": [0, 1]},
    })  # fmt: skip


COMPONENTS = dict(components())


def inside(value):
    """All dataclass objects in a value, with the way that leads to them."""
    if dataclasses.is_dataclass(value):
        yield value
        for field in dataclasses.fields(value):
            yield from inside(getattr(value, field.name))
    elif isinstance(value, tuple | list):
        for each in value:
            yield from inside(each)


def fields():
    for name, component in COMPONENTS.items():
        for part in inside(component):
            for field in dataclasses.fields(part):
                yield pytest.param(
                    part, field.name, id=f"{name}-{type(part).__name__}-{field.name}"
                )


@pytest.mark.parametrize(("part", "field"), list(fields()))
def test_every_field_of_a_component_is_part_of_the_identity(part, field):
    before = digest(part)
    changed = object.__new__(type(part))
    changed.__dict__.update(vars(part))
    changed.__dict__[field] = other_than(getattr(part, field))
    assert digest(changed) != before


@pytest.mark.parametrize("name", list(COMPONENTS))
def test_components_have_no_state_beside_their_fields(name):
    """What decides what they do is a field, or derived from fields."""
    component = COMPONENTS[name]
    assert dataclasses.is_dataclass(component)
    known = {field.name for field in dataclasses.fields(component)}
    again = object.__new__(type(component))
    again.__dict__.update({k: v for k, v in vars(component).items() if k in known})
    assert digest(again) == digest(component)


def requests():
    """Pairs that differ in one fact each."""
    x, wide = np.zeros((40, 3)), np.zeros((40, 4))
    logistic = PrivateLogisticRegression(1.0, 1e-6, bounds=Bounds(1.0), classes=[0, 1])
    lasso = PrivateLasso(1.0, 1e-6, bounds=Bounds(1.0, 1.0))
    yield request_of(lasso), request_of(PrivateLasso(1.0, 1e-6, bounds=Bounds(1.0, 2.0)))
    yield request_of(lasso, x), request_of(lasso, wide)
    yield request_of(lasso, x), request_of(lasso, np.zeros((41, 3)))
    yield (
        request_of(lasso),
        request_of(PrivateErm(Squared(), L1Ball(1.0), 1.0, 1e-6, bounds=Bounds(1.0, 1.0))),
    )
    yield request_of(logistic), dataclasses.replace(request_of(logistic), classes=np.array([0, 2]))


def keys_of(tree, way=()):
    """The ways to all leaves of a canonical form."""
    if isinstance(tree, dict):
        for key, each in tree.items():
            yield from keys_of(each, (*way, key))
    elif isinstance(tree, list) and tree:
        for i, each in enumerate(tree):
            yield from keys_of(each, (*way, i))
    else:
        yield way


def without(tree, way):
    """The tree with one leaf replaced by nothing."""
    if not way:
        return None
    if isinstance(tree, dict):
        return {k: without(v, way[1:]) if k == way[0] else v for k, v in tree.items()}
    return [without(v, way[1:]) if i == way[0] else v for i, v in enumerate(tree)]


def at(tree, way):
    for key in way:
        tree = tree[key]
    return tree


@pytest.mark.parametrize("name", [*COMPONENTS, "request"])
def test_a_mutant_that_drops_any_one_field_is_noticed(name):
    """For each leaf of the canonical form there is another value that differs in it alone.

    A serialisation without the leaf would give both the same digest; this one does not.
    """
    if name == "request":
        tree = plan(
            request_of(PrivateLogisticRegression(1.0, 1e-6, bounds=Bounds(1.0), classes=[0, 1]))
        ).facts
    else:
        tree = canonical(COMPONENTS[name])
    ways = list(keys_of(tree))
    assert ways
    for way in ways:
        leaf = at(tree, way)
        changed = _replaced(tree, way, f"{leaf} and more" if isinstance(leaf, str) else "another")
        assert digest(without(tree, way)) == digest(without(changed, way))  # what the mutant sees
        assert digest(tree) != digest(changed)


def _replaced(tree, way, value):
    if not way:
        return value
    if isinstance(tree, dict):
        return {k: _replaced(v, way[1:], value) if k == way[0] else v for k, v in tree.items()}
    return [_replaced(v, way[1:], value) if i == way[0] else v for i, v in enumerate(tree)]


class Plain:
    """A class of riata without fields: its state is what its attributes are."""

    __module__ = "riata.plain"

    def __init__(self, state):
        self.state = state


def test_an_object_without_fields_is_known_by_its_attributes():
    assert digest(canonical(Plain(1))) == digest(canonical(Plain(1)))
    assert digest(canonical(Plain(1))) != digest(canonical(Plain(2)))


def test_requests_that_differ_in_one_fact_have_other_digests():
    for one, other in requests():
        assert name_of(one) != name_of(other)
        assert name_of(one) == name_of(dataclasses.replace(one))


def test_the_same_request_has_the_same_digest_in_every_container():
    lasso = PrivateLasso(1.0, 1e-6, bounds=Bounds(1.0, 1.0))
    x = RNG.uniform(-1, 1, (40, 3))
    forms = [
        x,
        np.asfortranarray(x),
        x.astype(np.float32),
        sparse.csr_array(x),
        sparse.csc_matrix(x),
    ]
    assert len({name_of(request_of(lasso, form)) for form in forms}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True), (1, 1.0), (0, False), ("1", 1), (0.1, np.nextafter(0.1, 1)), (0.0, -0.0),
        ([1, 2], [[1], 2]), ({"a": 1}, {"a": 2}), ({"a": 1}, [["a", 1]]), (None, "None"),
        (np.zeros(3), np.zeros(4)), (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.zeros(3), np.zeros(3, dtype=np.float32)),
        (np.array(["a", "bc"]), np.array(["ab", "c"])),
        (np.arange(10_000.0), np.where(np.arange(10_000) == 5_000, -1.0, np.arange(10_000.0))),
        (Fraction(1, 3), Fraction(1, 4)), ({1, 2}, {1, 3}), (b"a", b"b"), (b"a", "a"),
        (sparse.csr_array(np.eye(3)), sparse.csr_array(2 * np.eye(3))),
    ],
)  # fmt: skip
def test_different_values_have_different_digests(one, other):
    assert digest(one) != digest(other)


def test_the_same_values_have_the_same_digest():
    assert digest(np.float64(0.5)) == digest(0.5)
    assert digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1})
    assert digest(sparse.csr_array(np.eye(3))) == digest(sparse.csc_array(np.eye(3)))
    x = RNG.normal(size=(5, 4))
    assert digest(x) == digest(np.asfortranarray(x)) == digest(x[:, ::-1][:, ::-1])


def test_a_digest_leaves_the_sparse_argument_as_it_was():
    parts = (np.array([1.0, 2.0, 3.0, 4.0]), np.array([2, 1, 1, 0]), np.array([0, 3, 4]))
    given = sparse.csr_array(tuple(part.copy() for part in parts), shape=(2, 3))
    tidy = sparse.csr_array([[0.0, 5.0, 1.0], [4.0, 0.0, 0.0]])
    assert digest(given) == digest(tidy)
    for now, part in zip((given.data, given.indices, given.indptr), parts, strict=True):
        assert np.array_equal(now, part)


def test_a_value_that_holds_itself_has_no_name():
    loop = []
    loop.append(loop)
    assert identity.unnamed(loop)


class _Mine(Squared):
    """A loss of somebody else's."""

    def __init__(self, weight):
        object.__setattr__(self, "weight", weight)


def _closure(a):
    return lambda: a


#: What has hidden state, or is code of other people: it has no name that says all about it.
WITHOUT_NAMES = {
    "a loss of one's own": _Mine(1.0),
    "a lambda": lambda: 1,
    "a closure": _closure(1),
    "a partial": functools.partial(int, base=2),
    "a method": "abc".upper,
    "a generator": np.random.default_rng(0),
    "a random state": random.Random(0),
    "a deque": collections.deque([1, 2]),
    "a masked array": np.ma.masked_array([1, 2], [0, 1]),
    "a structured array": np.zeros(2, dtype=[("a", "f8")]),
    "a frame": pd.DataFrame({"a": [1]}),
    "a series": pd.Series([1]),
    "a category": pd.Categorical(["a"]),
    "a subclass of an array": np.zeros(2).view(np.recarray),
    "inside a list": [1, (2, {"a": {3: lambda: 1}})],
}


@pytest.mark.parametrize("name", WITHOUT_NAMES)
def test_what_hides_its_state_is_unnamed_and_no_checkpoint_takes_it(name):
    value = WITHOUT_NAMES[name]
    assert identity.unnamed(value)
    digest(value)  # a label for fits without a checkpoint
    model = PrivateLasso(1.0, 1e-6, bounds=Bounds(1.0, 1.0))
    planned = plan(request_of(model))
    model.radius = value
    request = dataclasses.replace(planned.request, parameters=arguments_of(model))
    with pytest.raises(InvalidArgument, match="A checkpoint cannot be used with"):
        dataclasses.replace(planned, request=request).check_named()


@pytest.mark.parametrize("name", list(COMPONENTS))
def test_components_have_names(name):
    assert identity.unnamed(COMPONENTS[name]) == []


@pytest.mark.parametrize("name", list(CENTRAL))
def test_requests_of_estimators_have_names(name):
    plan(request_of(made(CENTRAL[name]))).check_named()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1j, 2j), (Decimal("1.0"), Decimal("1.00")), (range(3), range(4)),
        (bytearray(b"a"), b"a"), (datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)),
        (np.array(["2020-01-01"], "M8[D]"), np.array(["2020-01-01"], "M8[s]")),
        (np.array(["2020-01-01"], "M8[D]"), np.array(["2020-01-02"], "M8[D]")),
        *((np.array([datetime.date(2020, 1, d)], object), np.array([None])) for d in (1, 2)),
        (np.array([1 + 1j]), np.array([1 + 2j])), (np.datetime64("2020"), np.datetime64("2021")),
        ({(1, 2): 1}, {(1, 3): 1}), ({frozenset({1})}, {frozenset({2})}),
    ],
)  # fmt: skip
def test_values_of_rarer_types_have_names_of_their_own(one, other):
    assert digest(one) != digest(other)
    assert identity.unnamed([one, other]) == []


@pytest.mark.long
def test_the_digest_is_the_same_in_every_process():
    """Whatever the hashes of texts and the addresses of objects are."""
    code = (
        "from riata.identity import digest; from riata.sets import GroupL1Ball;"
        "print(digest([{'b', 'a', 'c'}, {'x': 1, 'y': {2.5, 1.5}}, GroupL1Ball([0, 0, 1], 1.0)]))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed in range(3)
    }  # fmt: skip
    assert len(found) == 1


def test_statement_ledger_and_model_file_carry_the_digest(tmp_path):
    ledger = riata.Ledger.create(tmp_path / "l.db", dataset="d", ceiling=Budget(1.0, 1e-6))
    model = PrivateLasso(1.0, 1e-6, bounds=Bounds(1.0, 1.0), ledger=ledger)
    model.fit(np.zeros((40, 3)), np.zeros(40))
    name = name_of(request_of(PrivateLasso(1.0, 1e-6, bounds=Bounds(1.0, 1.0))))
    assert model.privacy_.request == name
    assert ledger.charges[0].summary["request"] == name
    riata.save(model, tmp_path / "m.riata")
    assert riata.load(tmp_path / "m.riata").privacy_.request == name
    assert identity.digest(0) in str(model.privacy_) or name in str(model.privacy_)


@pytest.mark.not_quick
def test_a_search_carries_the_digest_of_all_its_candidates(tmp_path):
    ledger = riata.Ledger.create(tmp_path / "l.db", dataset="d", ceiling=Budget(9.0, 1e-6))
    found = set()
    for grid in ({"radius": [0.5, 1.0]}, {"radius": [0.5, 2.0]}):
        for steps in (2, 3):
            lasso = PrivateLasso(None, bounds=Bounds(1.0, 1.0), solver="frank-wolfe", steps=steps)
            search = riata.PrivateSearch(lasso, grid, epsilon=1.0, delta=1e-6, ledger=ledger)
            search.fit(np.zeros((40, 3)), np.zeros(40))
            assert search.privacy_.request == ledger.charges[-1].summary["request"]
            assert search.best_estimator_.privacy_.request == search.privacy_.request
            found.add(search.privacy_.request)
    assert len(found) == 4
