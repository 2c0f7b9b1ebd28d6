"""Nothing about the rows leaves a fit except through a mechanism.

Canaries are planted in the rows: a number inside the bounds, one far outside, and a label that is
in no public list. None of them, and no exact statistic of the rows, may be found in what a fit
leaves behind or prints, in any text or byte form. What a fit does must not depend on the rows.
"""

import copy
import gc
import itertools
import logging
import math
import pickle
import struct
import tempfile
import traceback
import warnings
import weakref
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from riata import (
    Bounds,
    Budget,
    Ledger,
    PrivateLasso,
    PrivateLogisticRegression,
    save,
)
from riata.curator import Curator, Filter
from riata.engines import LocalEngine, choice
from riata.errors import BudgetExceeded
from riata.losses import Squared
from riata.mechanisms import Exact, ExponentialMechanism
from riata.mechanisms.noise import Noise
from riata.privacy.events import compose
from riata.problem import Problem
from riata.queries import Gradient, VertexUtilities
from riata.sets import L1Ball

from model_cases import BOUNDS, ESTIMATORS, LENGTH, N_COLUMNS, N_ROWS, PHI, labels_for

pytestmark = pytest.mark.matrix(one_in=13)

INSIDE = 0.7310585786300049
OUTSIDE = 123456.789
LABEL = "canary-7f3a"


def planted(labels=None):
    """Rows with both numbers in X and y, or with the label among `labels`."""
    rng = np.random.default_rng(41)
    x = rng.uniform(-1, 1, (N_ROWS, N_COLUMNS))
    x[3, 2], x[5] = INSIDE, INSIDE
    x[7, 1] = OUTSIDE
    y = rng.uniform(-1, 1, N_ROWS)
    y[4], y[8] = INSIDE, OUTSIDE
    if labels is not None:
        y = np.array(rng.choice(labels, N_ROWS), dtype=object)
        y[9] = LABEL
    return x, y


class Canaries:
    """What must not be found, and where it is."""

    def __init__(self, *numbers, words=(), digits=7):
        self.forms = {}
        for number in numbers:
            for code in ("<d", ">d"):
                self.forms[struct.pack(code, number)] = number
            text = f"{abs(number):.{digits + 1}g}"[:-1]  # all but the digit that may be rounded
            self.forms[text.encode()] = number
            self.forms[float(number).hex().encode()] = number
        for word in words:
            for form in (word.encode(), word.encode("utf-16-le"), word.encode("utf-32-le")):
                self.forms[form] = word

    def inside(self, blob):
        """The canaries in some bytes or text."""
        blob = blob.encode() if isinstance(blob, str) else bytes(blob)
        return [canary for form, canary in self.forms.items() if form in blob]

    def reachable_from(self, value, path="", seen=None):
        """Every place below `value` that holds a canary."""
        seen = set() if seen is None else seen
        if id(value) in seen:
            return []
        seen.add(id(value))
        if isinstance(value, (str, bytes, bytearray)):
            return [path] if self.inside(value) else []
        if isinstance(value, (bool, int, type(None), type)):
            return []
        if isinstance(value, (float, np.floating)):
            return [path] if self.inside(struct.pack("<d", value)) else []
        found = [path] if self.inside(repr(value)) else []
        if isinstance(value, np.ndarray):
            if value.dtype != object:
                return found + ([path] if self.inside(value.tobytes()) else [])
            parts = enumerate(value.ravel().tolist())
        elif sparse.issparse(value):
            parts = [("data", value.data)]
        elif isinstance(value, dict):
            parts = [*value.items(), *(("key", key) for key in value)]
        elif isinstance(value, (list, tuple, set, frozenset)):
            parts = enumerate(value)
        else:
            parts = dict(getattr(value, "__dict__", {}))
            if is_dataclass(value):
                parts |= {f.name: getattr(value, f.name) for f in fields(value)}
            parts = parts.items()
        for name, part in parts:
            found += self.reachable_from(part, f"{path}.{name}", seen)
        return found


def exact_statistics(x, y):
    """What careless code would keep: moments, ranges and answers of the clipped rows."""
    numbers = []
    for bounds in (BOUNDS, LENGTH):
        clipped = bounds.clip_x(x)
        for rows in (clipped, PHI.rows(clipped)):
            numbers += [*rows.mean(axis=0), *rows.sum(axis=0), *rows.std(axis=0)]
            numbers += [*(rows**2).sum(axis=0), *(rows.T @ rows).ravel()]
            lengths = np.linalg.norm(rows, axis=1)
            numbers += [*lengths[np.abs(lengths - 1) > 1e-9]]  # 1 itself is the bound
        if y.dtype == object:
            continue
        targets = bounds.clip_y(y)
        problem = Problem(Squared(), L1Ball(1.0), bounds, len(x), x.shape[1])
        query = Gradient(problem, problem.set.start())
        total = LocalEngine(x, targets, bounds).total(query)
        numbers += [targets.mean(), targets.sum(), targets.std(), targets.var()]
        numbers += [*query.from_total(total), *total.astype(float), *(clipped.T @ targets)]
        numbers += [*np.linalg.lstsq(clipped, targets, rcond=None)[0]]
    return numbers


every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def data_for(name):
    return planted(labels_for(name))


def file_of(model):
    """The bytes that `riata.save` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        save(model, path)
        return path.read_bytes()


def everything_said_about(model):
    """Every text and byte form of a fitted model that a user may see, print or send."""
    statement = model.privacy_
    return {
        "repr": repr(model),
        "html": model._repr_html_(),
        "summary": str(model.summary()),
        "summary's records": repr(model.summary().records()),
        "intervals": model.conf_int().tobytes(),
        "parameters": repr(model.get_params()),
        "statement": str(statement),
        "statement's repr": repr(statement),
        "statement's html": statement._repr_html_(),
        "statement's sentence": statement.sentence,
        "statement as data": repr(statement.to_dict()),
        "plan": str(model.plan(N_ROWS, N_COLUMNS)),
        "plan's summary": repr(model.plan(N_ROWS, N_COLUMNS).summary()),
        "pickle": pickle.dumps(model),
        "model file": file_of(model),
        "coefficients": np.asarray(model.coef_).tobytes(),
        "intercept": np.asarray(model.intercept_).tobytes(),
    }


def test_the_search_finds_canaries():
    canaries = Canaries(INSIDE, OUTSIDE, words=[LABEL])

    class Holder:
        pass

    for secret in (
        INSIDE,
        [{"a": (OUTSIDE,)}],
        np.array([0.0, INSIDE]),
        np.array([OUTSIDE], dtype=">f8"),
        np.array([LABEL]),
        np.array([{"x": LABEL}], dtype=object),
        sparse.csr_array([[0.0, OUTSIDE]]),
        f"the largest is {OUTSIDE:.2f}",
        f"about {INSIDE:.8f}",
        {LABEL: 1},
        pickle.dumps({"y": INSIDE}),
        pickle.dumps(np.array([INSIDE])),
    ):
        holder = Holder()
        holder.kept = secret
        assert canaries.reachable_from(holder)
    assert not canaries.reachable_from([0.5, "0.7311", np.arange(9.0), b"12345"])


@every_estimator
def test_no_canary_and_no_exact_statistic_is_left_behind(name, capsys, caplog):
    # With a seed, so that no released number looks like a canary by chance in one run only.
    caplog.set_level(logging.DEBUG)
    x, y = data_for(name)
    model = ESTIMATORS[name](bounds=BOUNDS, random_state=6, verbose=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        said = everything_said_about(model.fit(x, y))
    printed = capsys.readouterr()
    said |= {"printed": printed.out, "progress": printed.err, "logged": caplog.text}
    assert [str(w.message) for w in caught] == []
    assert printed.out == ""

    canaries = Canaries(INSIDE, OUTSIDE, words=[LABEL])
    statistics = Canaries(*exact_statistics(x, y), digits=10)
    for where, text in said.items():
        assert canaries.inside(text) == [], where
        assert statistics.inside(text) == [], where
    assert canaries.reachable_from(model, name) == []
    assert statistics.reachable_from(model, name) == []


@every_estimator
def test_no_canary_and_no_exact_statistic_reaches_the_ledger(name):
    x, y = data_for(name)
    ledger = Ledger.create(":memory:", dataset="claims", ceiling=Budget(1.0, 1e-6))
    ESTIMATORS[name](bounds=BOUNDS, ledger=ledger).fit(x, y)
    (charge,) = ledger.charges
    said = [repr(ledger), repr(ledger.spent), repr(charge.event), repr(charge.summary)]
    canaries = Canaries(INSIDE, OUTSIDE, words=[LABEL])
    statistics = Canaries(*exact_statistics(x, y), digits=10)
    for text in said:
        assert canaries.inside(text) == []
        assert statistics.inside(text) == []


@every_estimator
def test_no_rows_outlive_the_fit(name, monkeypatch):
    engines = []

    class Watched(LocalEngine):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            engines.append(weakref.ref(self))

    monkeypatch.setattr(choice, "LocalEngine", Watched)
    x, y = data_for(name)
    rows = weakref.ref(x)
    model = ESTIMATORS[name](bounds=BOUNDS).fit(x, y)
    del x, y
    gc.collect()
    assert [engine() for engine in engines] == [None]
    assert rows() is None
    assert model.n_features_in_ == N_COLUMNS


# What a fit does must not depend on the rows.


def hostile_data(name):
    """Data sets of one shape that differ in every way that values can."""
    x, y = data_for(name)
    numbers = y.dtype != object
    rng = np.random.default_rng(42)
    rubbish = rng.choice([np.nan, np.inf, -np.inf, 1e300, -1e300, 5e-324, 0.0], x.shape)
    yield x, y
    yield np.zeros_like(x), (np.zeros(N_ROWS) if numbers else np.full(N_ROWS, y[0]))
    yield np.full_like(x, np.nan), (np.full(N_ROWS, np.nan) if numbers else np.full(N_ROWS, LABEL))
    yield np.ones_like(x), (np.full(N_ROWS, np.inf) if numbers else np.full(N_ROWS, None))
    yield rubbish, (rubbish[:, 0] if numbers else y[::-1])
    yield 1e300 * np.sign(x), (-1e300 * np.sign(rubbish[:, 1]) if numbers else y)


def _left(account):
    """Releases that are left of a list, or what is left of a sum."""
    return account._left if isinstance(account, Filter) else sum(account._left.values())


@every_estimator
def test_steps_and_releases_are_those_of_the_plan_whatever_the_rows_contain(name, monkeypatch):
    release, taken, left = Curator.release, [], []

    def counted(self, query, mechanism, part=0):
        taken.append((type(query).__name__, mechanism.event))
        released = release(self, query, mechanism, part)
        left.append(sum(_left(paid_for) for paid_for in self._paid_for))
        return released

    monkeypatch.setattr(Curator, "release", counted)
    runs = []
    for x, y in hostile_data(name):
        taken.clear(), left.clear()
        model = ESTIMATORS[name](bounds=BOUNDS, random_state=5).fit(x, y)
        plan = model.plan(N_ROWS, N_COLUMNS)
        assert model.n_iter_ == model.privacy_.steps
        in_fits = sum(plan.times.get(role, plan.steps) for role in plan.mechanisms) * plan.fits
        planned = in_fits + sum(each.times for each in plan.extra_releases.values())
        # What is released follows from earlier releases, within a sum or a list.
        if plan.adaptive or plan.solver in ("scaled-gradient", "class-sums", "softmax-gradient"):
            assert plan.adaptive or len(taken) <= planned
            assert all(before >= after for before, after in itertools.pairwise(left))
            assert left[-1] >= 0
            said = replace(model.privacy_, steps=0)
            runs.append((None, str(said), 0, sorted(vars(model))))
            assert np.all(np.isfinite(model.coef_))
            assert np.all(np.isfinite(model.intercept_))
            continue
        assert model.n_iter_ == plan.steps
        assert left[-1] == 0
        assert len(taken) == planned
        assert np.all(np.isfinite(model.coef_))
        assert np.all(np.isfinite(model.intercept_))
        runs.append((list(taken), str(model.privacy_), model.n_iter_, sorted(vars(model))))
    assert all(run == runs[0] for run in runs)


@every_estimator
def test_the_ledger_is_charged_the_same_whatever_the_rows_contain(name):
    charged = []
    for x, y in hostile_data(name):
        ledger = Ledger.create(":memory:", dataset="claims", ceiling=Budget(1.0, 1e-6))
        ESTIMATORS[name](bounds=BOUNDS, ledger=ledger).fit(x, y)
        (charge,) = ledger.charges
        charged.append((charge.event, charge.summary, ledger.spent))
    assert all(charge == charged[0] for charge in charged)


def longdouble(values):
    return np.array([np.longdouble(value) for value in values])


def one_of_objects(value):
    found = np.array([None, 0.5], dtype=object)
    found[0] = value
    return found


#: Values that a column of their type can hold, in rows of which the first is peculiar.
PECULIAR_TARGETS = {
    "NaN": np.array([np.nan, 0.5]),
    "None": np.array([None, 0.5], dtype=object),
    "an integer beyond float64": np.array([10**400, 0.5], dtype=object),
    "text among objects": np.array([LABEL, 0.5], dtype=object),
    "a date among objects": np.array([pd.Timestamp("2001-01-01"), 0.5], dtype=object),
    "an array among objects": one_of_objects(np.zeros(2)),
    "pandas NA among objects": np.array([pd.NA, 0.5], dtype=object),
    "pandas NaT among objects": np.array([pd.NaT, 0.5], dtype=object),
    "a long double beyond float64": longdouble(["1e4000", "0.5"]),
    "float16 infinity": np.array([np.inf, 0.5], dtype=np.float16),
    "pandas Int64 with a missing value": pd.array([None, 1], dtype="Int64"),
    "pandas Float64 with a missing value": pd.array([None, 0.5], dtype="Float64"),
    "polars with a null": pl.Series([None, 0.5]),
}
PECULIAR_LABELS = {
    "NaN": np.array([np.nan, 1.0]),
    "None": np.array([None, 1], dtype=object),
    "a string among numbers": np.array(["canary", 1], dtype=object),
    "an array among numbers": np.array([np.zeros(2), 1], dtype=object),
    "pandas NA among objects": np.array([pd.NA, 1], dtype=object),
    "pandas Int64 with a missing value": pd.array([None, 1], dtype="Int64"),
    "pandas boolean with a missing value": pd.array([None, True], dtype="boolean"),
    "pandas string with a missing value": pd.array([None, "1"], dtype="string"),
    "pandas categorical with a missing value": pd.Categorical([None, 1], categories=[0, 1]),
    "polars with a null": pl.Series([None, 1]),
    "polars text with a null": pl.Series([None, "1"]),
}


def repeated(values, first):
    """Twenty rows: `first` of the peculiar value, the others of the usual one."""
    picks = np.repeat([0, 1], [first, 20 - first])
    if isinstance(values, pl.Series):
        return values.gather(picks.tolist())
    return values.take(picks) if hasattr(values, "take") else values[picks]


@pytest.mark.parametrize("first", [0, 1], ids=["usual", "peculiar"])
@pytest.mark.parametrize("kind", PECULIAR_TARGETS)
def test_no_target_stops_or_disturbs_a_regression(kind, first):
    y = repeated(PECULIAR_TARGETS[kind], first)
    model = PrivateLasso(1.0, 0.0, bounds=BOUNDS, steps=2).fit(np.zeros((20, 2)), y)
    assert np.all(np.isfinite(model.coef_))


@pytest.mark.parametrize("first", [0, 1], ids=["usual", "peculiar"])
@pytest.mark.parametrize("kind", PECULIAR_TARGETS)
def test_no_entry_stops_or_disturbs_a_regression(kind, first):
    column = repeated(PECULIAR_TARGETS[kind], first)
    if isinstance(column, pl.Series):
        x = pl.DataFrame({"a": column, "b": column})
    elif isinstance(column, np.ndarray):
        x = np.stack([column, column], axis=1)
    else:
        x = pd.DataFrame({"a": column, "b": column})
    model = PrivateLasso(1.0, 0.0, bounds=BOUNDS, steps=2).fit(x, np.zeros(20))
    assert np.all(np.isfinite(model.coef_))


@pytest.mark.parametrize("first", [0, 1], ids=["usual", "peculiar"])
@pytest.mark.parametrize("kind", PECULIAR_LABELS)
def test_no_label_stops_or_disturbs_a_classification(kind, first):
    y = repeated(PECULIAR_LABELS[kind], first)
    text = "text" in kind or "pandas string" in kind
    classes = ["0", "1"] if text else [0, 1]
    model = PrivateLogisticRegression(1.0, 0.0, bounds=BOUNDS, classes=classes, steps=2)
    assert np.all(np.isfinite(model.fit(np.zeros((20, 2)), y).coef_))


# Errors: what is wrong with the arguments, never what is in the rows.


def with_number(kind):
    x = np.zeros((20, 2), dtype=kind)
    x[3, 1] = OUTSIDE
    return x


def with_text(kind=object):
    x = np.full((20, 2), "0.5", dtype=kind)
    x[3, 1] = LABEL
    return x


BAD_X = {
    "complex": with_number(complex),
    "text": with_text("U20"),
    "bytes": np.char.encode(with_text("U20")),
    "variable-width text": with_text(np.dtypes.StringDType()),
    "pandas string": pd.DataFrame(with_text(), columns=["a", "b"]).astype("string"),
    "pandas category": pd.DataFrame(with_text(), columns=["a", "b"]).astype("category"),
    "polars text": pl.DataFrame(with_text().tolist(), schema=["a", "b"], orient="row"),
    "ragged": [[OUTSIDE, 1.0], [INSIDE]] * 10,
    "dictionaries": [{"a": OUTSIDE, "b": LABEL}] * 20,
    "one dimension": with_number(float)[:, 1],
    "three dimensions": with_number(float)[:, :, None],
    "no columns": with_number(float)[:, :0],
    "too few rows": with_number(float)[3:5],
    "sparse and complex": sparse.csr_array(with_number(complex)),
    "one row as text": [LABEL] * 20,
    "a text": LABEL,
}
BAD_Y = {
    "complex": with_number(complex)[:, 1],
    "text": with_text("U20")[:, 1],
    "variable-width text": with_text(np.dtypes.StringDType())[:, 1],
    "pandas string": pd.Series(with_text()[:, 1], dtype="string"),
    "pandas category": pd.Series(with_text()[:, 1], dtype="category"),
    "polars text": pl.Series(with_text()[:, 1].tolist()),
    "two columns": with_number(float),
    "too long": np.append(with_number(float)[:, 1], OUTSIDE),
    "lists": [[OUTSIDE, LABEL]] * 20,
    "dictionary": {"y": OUTSIDE},
    "a text": LABEL,
    "dates": pd.Series([pd.Timestamp("2001-01-01")] * 20),
}


def refused(model, x, y):
    """The printed traceback of a fit that must fail."""
    with pytest.raises((TypeError, ValueError)) as caught:
        model.fit(x, y)
    return "".join(traceback.format_exception(caught.value)) + repr(caught.value.args)


@pytest.mark.parametrize("kind", BAD_X)
def test_an_error_about_X_quotes_no_row_and_charges_nothing(kind):
    ledger = Ledger.create(":memory:", dataset="claims", ceiling=Budget(9.0))
    model = PrivateLasso(1.0, 0.0, bounds=BOUNDS, steps=2, ledger=ledger)
    message = refused(model, BAD_X[kind], np.zeros(20))
    assert Canaries(OUTSIDE, INSIDE, words=[LABEL]).inside(message) == []
    assert ledger.charges == []


@pytest.mark.parametrize("kind", BAD_Y)
def test_an_error_about_y_quotes_no_target_and_charges_nothing(kind):
    ledger = Ledger.create(":memory:", dataset="claims", ceiling=Budget(9.0))
    model = PrivateLasso(1.0, 0.0, bounds=BOUNDS, steps=2, ledger=ledger)
    message = refused(model, np.zeros((20, 2)), BAD_Y[kind])
    assert Canaries(OUTSIDE, INSIDE, words=[LABEL]).inside(message) == []
    assert ledger.charges == []


def test_errors_about_parameters_quote_no_row():
    x, y = planted()
    labels = planted(["no", "yes"])[1]
    full = Ledger.create(":memory:", dataset="claims", ceiling=Budget(0.5, 1e-6))
    common = {"epsilon": 1.0, "delta": 1e-6}
    attempts = [
        (PrivateLasso(**common), y, ValueError),
        (PrivateLasso(**common, bounds=Bounds([1.0, 2.0], 1.0)), y, ValueError),
        (PrivateLasso(**common, bounds=Bounds(1.0)), y, ValueError),
        (PrivateLasso(**common, bounds=BOUNDS, ledger=full), y, BudgetExceeded),
        (PrivateLasso(**common, bounds=BOUNDS, solver="none"), y, ValueError),
        (PrivateLogisticRegression(**common, bounds=BOUNDS), labels, ValueError),
        (PrivateLogisticRegression(**common, bounds=BOUNDS, classes=["no"]), labels, ValueError),
        (PrivateLogisticRegression(**common, bounds=BOUNDS, classes="observed"), y, ValueError),
    ]
    canaries = Canaries(INSIDE, OUTSIDE, words=[LABEL])
    for model, target, kind in attempts:
        with pytest.raises(kind) as caught:
            model.fit(x, target)
        text = "".join(traceback.format_exception(caught.value))
        assert canaries.inside(text) == [], model


# Objects that hold rows or noise.


def trusted_objects():
    x, y = planted()
    engine = LocalEngine(x, y, BOUNDS)
    mechanism = ExponentialMechanism(1.0)
    curator = Curator.open(
        compose((mechanism.event, 1)), read=lambda: engine, noise=Noise(), adjacency="replace-one"
    )
    return {"engine": engine, "curator": curator, "noise": Noise()}


@pytest.mark.parametrize("which", ["engine", "curator", "noise"])
@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_what_holds_rows_or_noise_cannot_be_copied_or_sent(which, duplicate):
    with pytest.raises(TypeError, match=which):
        duplicate(trusted_objects()[which])


@pytest.mark.parametrize("which", ["engine", "curator", "noise"])
def test_what_holds_rows_or_noise_prints_none_of_it(which):
    thing = trusted_objects()[which]
    canaries = Canaries(INSIDE, OUTSIDE)
    for text in (repr(thing), str(thing), f"{thing}"):
        assert canaries.inside(text) == []
        assert len(text) < 80


def test_a_release_outside_the_plan_is_refused_and_says_nothing_about_the_rows():
    x, y = planted()
    problem = Problem(Squared(), L1Ball(1.0), BOUNDS, N_ROWS, N_COLUMNS)
    mechanism = ExponentialMechanism(1.0)
    curator = Curator.open(
        compose((mechanism.event, 1)),
        read=lambda: LocalEngine(x, y, BOUNDS),
        noise=Noise(),
        adjacency="replace-one",
    )
    scores = VertexUtilities(problem, problem.set.start())
    assert isinstance(curator.release(scores, mechanism), int)
    for outside in (mechanism, ExponentialMechanism(math.nextafter(1.0, 2.0)), Exact()):
        with pytest.raises(BudgetExceeded) as caught:
            curator.release(scores, outside)
        assert Canaries(INSIDE, OUTSIDE).inside(str(caught.value)) == []


def test_the_rows_are_read_only_after_the_charge():
    ledger = Ledger.create(":memory:", dataset="claims", ceiling=Budget(1.0))
    events = []

    def read():
        events.append(len(ledger.charges))
        return LocalEngine(*planted(), BOUNDS)

    event = compose((ExponentialMechanism(1.0).event, 1))
    common = {"read": read, "noise": Noise(), "adjacency": "replace-one", "ledger": ledger}
    Curator.open(event, **common)
    assert events == [1]
    with pytest.raises(BudgetExceeded):
        Curator.open(event, **common)
    assert events == [1]
