"""Attacks on checkpoints: none gets more than one answer to each query for one charge.

Copies, cuts, rollbacks, other containers, other memory, other schemas, other classes, other arrays,
other rows, forged ids and prepaid ids. Each of them broke an earlier version.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import shutil

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from riata import (
    Bounds,
    Budget,
    Ledger,
    PrivateErm,
    PrivateLasso,
    PrivateLogisticRegression,
    PrivatePoissonRegression,
    ProjectedRegression,
    Schema,
    read,
)
from riata.checkpoint import Checkpoint
from riata.curator import Curator
from riata.errors import BudgetExceeded, CheckpointError, InvalidArgument, LedgerError
from riata.losses import Huber, Squared
from riata.privacy.events import Pure
from riata.release_text import release_from_text
from riata.sets import GroupL1Ball, L1Ball, Polytope

from clusters import cluster

RNG = np.random.default_rng(0)
N, P = 600, 12
X = np.round(RNG.uniform(-1, 1, (N, P)) * (RNG.random((N, P)) < 0.6), 3)
Y = np.round(np.clip(0.6 * X[:, 0] - 0.3 * X[:, 1], -1, 1), 3)
BOUNDS = Bounds(x=1.0, y=1.0)


class Stop(BaseException):
    """As a kill, for this process."""


def begin(model, x, y, path, releases=0):
    """A fit that is charged and stops after so many releases."""
    begin_with(model, x, y, path, {}, releases)


def begin_with(model, x, y, path, of_rows, releases=0):
    """The same with weights or exposures of rows."""
    made, release = [0], Curator.release

    def counted(self, *query, **more):
        if made[0] == releases:
            raise Stop
        made[0] += 1
        return release(self, *query, **more)

    Curator.release = counted
    try:
        with pytest.raises(Stop):
            model.fit(x, y, **of_rows, checkpoint=path)
    finally:
        Curator.release = release


def copied(path, folder, lines=None):
    """A copy of a checkpoint and its key, cut off after so many lines."""
    folder.mkdir(exist_ok=True)
    other = folder / "fit"
    whole = path.read_bytes().splitlines(keepends=True)
    other.write_bytes(b"".join(whole[:lines]))
    shutil.copy(path.with_name(path.name + ".key"), other.with_name("fit.key"))
    return other


def released(path):
    found = [json.loads(line.partition(b" ")[2]) for line in path.read_bytes().splitlines()[1:]]
    return [release_from_text(each["value"]) for each in found if "value" in each]


def assert_same(one, two):
    assert len(one) == len(two)
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a, b)


FORMS = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "CSR": sparse.csr_array,
    "CSC": sparse.csc_array,
    "frame": pd.DataFrame,
}
SOLVERS = {
    "default": {},
    "frank-wolfe": {"solver": "frank-wolfe", "steps": 12},
    "refitted": {"solver": "refitted-frank-wolfe"},
    "scaled": {"solver": "scaled-gradient"},
    "statistics": {"solver": "sufficient-statistics"},
}


@pytest.mark.matrix(one_in=3)
@pytest.mark.parametrize("how", SOLVERS)
def test_copies_in_other_engines_and_containers_release_the_same(how, tmp_path):
    """Of one charge, any number of copies: cut off anywhere, in any form, in any engine."""
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", ceiling=Budget(1.0, 1e-6))

    def model(engine):
        return PrivateLasso(1.0, 1e-6, bounds=BOUNDS, ledger=ledger, engine=engine, **SOLVERS[how])

    begin(model("auto"), X, Y, tmp_path / "fit", releases=3)
    whole, runs = tmp_path / "fit", []
    for k, (name, form) in enumerate(FORMS.items()):
        engine = ("numpy", "scan", "disk", "auto", "numba")[k]
        copy = copied(whole, tmp_path / name, lines=1 + k % 3)
        model(engine).fit(form(X) if name != "frame" else form(X).to_numpy(), Y, checkpoint=copy)
        runs.append(released(copy))
    for run in runs[1:]:
        assert_same(run, runs[0])
    assert len(ledger.charges) == 1


def test_copies_with_little_and_much_memory_release_the_same(tmp_path, monkeypatch):
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(P)]).assign(y=Y)
    frame.to_parquet(tmp_path / "rows.parquet")
    schema = Schema.from_table({
        "features": [{"name": f"c{j}", "kind": "number", "bounds": [-1, 1]} for j in range(P)],
        "target": {"name": "y", "bounds": [-1, 1]},
    })  # fmt: skip
    model = PrivateLasso(1.0, 1e-6)
    source = read(tmp_path / "rows.parquet", schema)
    begin(model, source, None, tmp_path / "fit")
    runs = []
    for memory in ("1k", "8GB"):
        monkeypatch.setenv("RIATA_MEMORY", memory)
        copy = copied(tmp_path / "fit", tmp_path / memory)
        model.fit(read(tmp_path / "rows.parquet", schema), checkpoint=copy)
        runs.append(released(copy))
    assert_same(*runs)


V1, V2 = RNG.uniform(-1, 1, (2, 6, P))
A1, A2 = RNG.normal(size=(2, 3, P))
L2 = Bounds(x=1.0, y=1.0, norm="l2")


def logistic(**how):
    return PrivateLogisticRegression(
        **{"epsilon": 0.5, "delta": 1e-6, "bounds": Bounds(1.0), "classes": ["a", "b"], **how}
    )


def erm(loss=None, set_=None, **how):
    how = {"solver": "frank-wolfe", "steps": 5, "fit_intercept": False, **how}
    return PrivateErm(loss or Squared(), set_ or L1Ball(1.0), 1.0, 1e-6, bounds=BOUNDS, **how)


def projected(**how):
    how = {"dimension": 3, "clip": 1.0, "solver": "noisy-gradient", "steps": 4, **how}
    return ProjectedRegression(0.5, 1e-6, bounds=L2, **how)


#: A run, and another with the same key that asks something else.
OTHERS = {
    "classes": (
        logistic(class_weight="balanced"),
        logistic(class_weight="balanced", classes=["a", "c"]),
    ),
    "class weights": (logistic(class_weight={"a": 2.0}), logistic(class_weight={"a": 3.0})),
    "calibration": (logistic(calibration=True), logistic(calibration=False)),
    "intercept": (erm(fit_intercept=True), erm()),
    "vertices": (erm(set_=Polytope(V1)), erm(set_=Polytope(V2))),
    "groups": (
        erm(set_=GroupL1Ball([*[0] * 6, *[1] * 6], 1.0), solver="gaussian-frank-wolfe"),
        erm(set_=GroupL1Ball([*[0] * 5, *[1] * 7], 1.0), solver="gaussian-frank-wolfe"),
    ),
    "loss": (erm(Huber(0.5)), erm(Huber(0.25))),
    "radius": (erm(set_=L1Ball(1.0)), erm(set_=L1Ball(2.0))),
    "projection": (projected(projection=A1), projected(projection=A2)),
    "seed of the projection": (projected(seed=0), projected(seed=1)),
    "clip": (projected(), projected(clip=2.0)),
    "bounds of one column": (
        PrivateLasso(1.0, 1e-6, bounds=Bounds(np.ones(P), 1.0), solver="frank-wolfe", steps=4),
        PrivateLasso(1.0, 1e-6, bounds=Bounds(np.append(np.ones(P - 1), 0.5), 1.0),
                     solver="frank-wolfe", steps=4),
    ),
    "steps": (erm(steps=5), erm(steps=6)),
    "epsilon": (PrivateLasso(1.0, 1e-6, bounds=BOUNDS), PrivateLasso(2.0, 1e-6, bounds=BOUNDS)),
    "adjacency": (PrivateLasso(1.0, 1e-6, bounds=BOUNDS),
                  PrivateLasso(1.0, 1e-6, bounds=BOUNDS, adjacency="add-remove")),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("releases", [0, 1])
def test_another_request_is_refused(name, releases, tmp_path):
    one, other = OTHERS[name]
    y = np.where(Y > 0, "a", "b").astype(object) if hasattr(one, "classes") else Y
    begin(one, X, y, tmp_path / "fit", releases)
    before = (tmp_path / "fit").read_bytes()
    with pytest.raises(CheckpointError, match="belongs to another run"):
        other.fit(X, y, checkpoint=tmp_path / "fit")
    assert (tmp_path / "fit").read_bytes() == before


def test_another_schema_of_the_same_file_is_refused(tmp_path):
    frame = pd.DataFrame(
        {name: RNG.uniform(0, 1, N) for name in ("age", "weight", "hiv", "income")}
    )

    def source(feature, target, bound=1):
        return read(frame, Schema.from_table({
            "ignore_others": True,
            "features": [{"name": feature, "kind": "number", "bounds": [0, bound]}],
            "target": {"name": target, "bounds": [0, 1]},
        }))  # fmt: skip

    model = PrivateLasso(1.0, 1e-6)
    begin(model, source("age", "hiv"), None, tmp_path / "fit")
    for other in (source("weight", "hiv"), source("age", "income"), source("age", "hiv", 2)):
        with pytest.raises(CheckpointError, match="schema"):
            model.fit(other, checkpoint=copied(tmp_path / "fit", tmp_path / "copy"))


@pytest.mark.parametrize("engine", ["numpy", "scan", "disk"])
@pytest.mark.parametrize(
    "change", ["entry", "target", "order", "last row", "sign of a small entry"]
)
def test_other_rows_are_refused(change, engine, tmp_path):
    model = PrivateLasso(1.0, 1e-6, bounds=BOUNDS, solver="frank-wolfe", steps=5, engine=engine)
    begin(model, X, Y, tmp_path / "fit", releases=2)
    x, y = X.copy(), Y.copy()
    if change == "entry":
        x[17, 3] += 0.01
    elif change == "target":
        y[40] += 1e-9
    elif change == "order":
        x[[1, 2]], y[[1, 2]] = x[[2, 1]], y[[2, 1]]
    elif change == "last row":
        x[-1] = 0.5
    else:
        x[5, 5] = 2e-5 if x[5, 5] == 0 else -x[5, 5]
    with pytest.raises(CheckpointError, match="other rows"):
        model.fit(x, y, checkpoint=copied(tmp_path / "fit", tmp_path / "copy"))
    model.fit(sparse.csc_array(X), Y, checkpoint=copied(tmp_path / "fit", tmp_path / "same"))


@pytest.mark.parametrize("engine", ["numpy", "scan", "disk"])
def test_other_rows_before_the_first_release_are_refused(engine, tmp_path):
    """As soon as rows were read: nothing needs to have been released."""
    model = PrivateLasso(1.0, 1e-6, bounds=BOUNDS, solver="frank-wolfe", steps=5, engine=engine)
    begin(model, X, Y, tmp_path / "fit")
    other = X.copy()
    other[0, 0] += 0.5
    with pytest.raises(CheckpointError, match="other rows"):
        model.fit(other, Y, checkpoint=copied(tmp_path / "fit", tmp_path / "copy"))


def test_other_rows_before_rows_were_read_get_other_noise(tmp_path):
    """A copy from before that knows no rows yet; its noise follows from them."""
    model = PrivateErm(Squared(), L1Ball(1.0), 1.0, 1e-6, bounds=BOUNDS, fit_intercept=False,
                       solver="gaussian-frank-wolfe", steps=1)  # fmt: skip
    begin(model, X, Y, tmp_path / "fit")
    key = tmp_path / "fit.key"
    key.write_bytes(key.read_bytes()[:32])
    other = X.copy()
    other[0, 0] += 0.5
    found = []
    for name, x in (("same", X), ("other", other)):
        copy = copied(tmp_path / "fit", tmp_path / name)
        model.fit(x, Y, checkpoint=copy)
        found.append(released(copy)[0])
    exact = [(-2 * Y) @ x / N for x in (X, other)]
    noise = [a - b for a, b in zip(found, exact, strict=True)]
    assert np.abs(noise[0] - noise[1]).max() > 1e-4  # the same noise would cancel


def test_nothing_of_the_rows_shows_in_their_code(tmp_path):
    """The codes of the same rows in two runs have nothing in common."""
    codes = []
    for name in ("one", "two"):
        model = PrivateLasso(1.0, 1e-6, bounds=BOUNDS, solver="frank-wolfe", steps=3)
        begin(model, X, Y, tmp_path / name, releases=1)
        line = (tmp_path / name).read_bytes().splitlines()[1]
        codes.append(json.loads(line.partition(b" ")[2])["rows"])
    assert len(codes[0]) == len(codes[1]) == 64
    assert codes[0] != codes[1]


def keyed(key, *parts):
    code = hmac.new(key, digestmod=hashlib.sha256)
    for part in parts:
        code.update(len(part).to_bytes(8, "big") + part)
    return code.digest()


def test_a_new_key_with_the_id_of_a_charged_run_is_refused(tmp_path):
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", ceiling=Budget(0.1, 1e-6))
    model = PrivateLasso(0.1, 1e-6, bounds=BOUNDS, ledger=ledger)
    model.fit(X, Y, checkpoint=tmp_path / "honest")
    first = json.loads((tmp_path / "honest").read_bytes().splitlines()[0].partition(b" ")[2])
    name = first["request"].encode()
    for k in range(5):
        key = os.urandom(32) if k else bytes(32)
        own = keyed(key, b"id", name).hex()[:32]  # not charged yet
        for identity, refusal in ((first["id"], CheckpointError), (own, BudgetExceeded)):
            body = json.dumps({**first, "id": identity}, sort_keys=True, separators=(",", ":"))
            link = keyed(key, keyed(key, b"run", name), body.encode())
            forged = tmp_path / f"forged {k} {identity[:4]}"
            forged.write_bytes(link.hex().encode() + b" " + body.encode() + b"\n")
            forged.with_name(forged.name + ".key").write_bytes(key)
            with pytest.raises(refusal):
                model.fit(X, Y, checkpoint=forged)
    assert len(ledger.charges) == 1


@pytest.mark.parametrize("what", ["nothing", "request", "request and cost"])
def test_a_charge_that_does_not_pay_for_the_run_is_refused(what, tmp_path):
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", ceiling=Budget(0.01, 1e-6))
    model = PrivateLasso(5.0, 1e-6, bounds=BOUNDS)
    begin(model, X, Y, tmp_path / "fit")
    first = json.loads((tmp_path / "fit").read_bytes().splitlines()[0].partition(b" ")[2])
    summary = {"run": first["id"]}
    if "request" in what:
        summary["request"] = first["request"]
    cost = model.plan(N, P).cost if "cost" in what else Pure(1e-9)
    if "cost" in what:
        with pytest.raises(BudgetExceeded):
            ledger.charge(cost, adjacency="replace-one", summary=summary)
        return
    ledger.charge(cost, adjacency="replace-one", summary=summary)
    with pytest.raises(CheckpointError, match="does not pay for the run"):
        model.set_params(ledger=ledger).fit(X, Y, checkpoint=tmp_path / "fit")
    assert released(tmp_path / "fit") == []


@pytest.mark.parametrize("request_of_charge", [{}, {"request": "0" * 64}], ids=["none", "another"])
def test_a_charge_of_the_same_cost_for_another_request_is_refused(request_of_charge, tmp_path):
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", ceiling=Budget(20.0, 1e-5))
    model = PrivateLasso(5.0, 1e-6, bounds=BOUNDS)
    begin(model, X, Y, tmp_path / "fit")
    first = json.loads((tmp_path / "fit").read_bytes().splitlines()[0].partition(b" ")[2])
    summary = {"run": first["id"], **request_of_charge}
    ledger.charge(model.plan(N, P).cost, adjacency="replace-one", summary=summary)
    with pytest.raises(CheckpointError, match="another request: it does not pay for the run"):
        model.set_params(ledger=ledger).fit(X, Y, checkpoint=tmp_path / "fit")
    assert released(tmp_path / "fit") == []


def test_a_checkpoint_without_a_charge_pays_for_nothing(tmp_path):
    """Begun without a ledger, or with another one: this ledger is charged."""
    model = PrivateLasso(1.0, 1e-6, bounds=BOUNDS)
    begin(model, X, Y, tmp_path / "fit", releases=2)
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", ceiling=Budget(1.0, 1e-6))
    model.set_params(ledger=ledger).fit(X, Y, checkpoint=tmp_path / "fit")
    assert len(ledger.charges) == 1
    assert ledger.charges[0].summary["request"] == model.privacy_.request


def test_a_rollback_repeats_what_was_released(tmp_path):
    model = PrivateLasso(1.0, 1e-6, bounds=BOUNDS, solver="frank-wolfe", steps=10)
    begin(model, X, Y, tmp_path / "fit", releases=9)
    before = released(tmp_path / "fit")
    early = copied(tmp_path / "fit", tmp_path / "early", lines=4)
    begin(model, X, Y, early, releases=9)
    assert_same(released(early), before)


def test_a_run_that_is_over_reads_no_row(tmp_path):
    model = PrivateLasso(1.0, 1e-6, bounds=BOUNDS)
    first = model.fit(X, Y, checkpoint=tmp_path / "fit").coef_
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", ceiling=Budget(1.0, 1e-6))
    again = model.set_params(ledger=ledger).fit(np.zeros_like(X), Y, checkpoint=tmp_path / "fit")
    assert np.array_equal(again.coef_, first)
    assert len(ledger.charges) == 0


LOSS = """
from dataclasses import dataclass
from riata.losses import Squared

@dataclass(frozen=True)
class Mine(Squared):
    def slope(self, margin, y):
        return {factor} * super().slope(margin, y)
"""


def test_code_without_a_name_is_refused_before_anything_is_charged(tmp_path):
    """Two losses of one name would get the same noise, and their difference is exact."""
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", ceiling=Budget(5.0, 1e-6))
    for factor in (0.0, 1.0):
        scope = {}
        exec(LOSS.format(factor=factor), scope)
        model = erm(scope["Mine"](), ledger=ledger)
        with pytest.raises(InvalidArgument, match="A checkpoint cannot be used with"):
            model.fit(X, Y, checkpoint=tmp_path / f"{factor}")
    assert not ledger.charges
    assert not (tmp_path / "0.0").exists()
    model.fit(X, Y)  # without a checkpoint it may be any code


@pytest.mark.parametrize("change", ["order", "an entry"])
def test_a_ledger_remembers_the_rows_of_a_run(change, tmp_path):
    """Copies from before rows were read: the first of them to read rows decides."""
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", ceiling=Budget(1.0, 1e-6))
    model = PrivateLasso(1.0, 1e-6, bounds=BOUNDS, solver="frank-wolfe", steps=5, ledger=ledger)
    begin(model, X, Y, tmp_path / "fit")
    key = tmp_path / "fit.key"
    key.write_bytes(key.read_bytes()[:32])  # as if it had been copied before
    order = np.random.default_rng(0).permutation(N)
    x, y = (X[order], Y[order]) if change == "order" else (np.where(X == 0, 0.5, X), Y)
    with pytest.raises(CheckpointError, match="other rows"):
        model.fit(x, y, checkpoint=copied(tmp_path / "fit", tmp_path / "other"))
    model.fit(X, Y, checkpoint=copied(tmp_path / "fit", tmp_path / "same"))
    assert len(ledger.charges) == 1


def test_a_ledger_from_between_the_charge_and_the_first_row_is_refused(tmp_path, monkeypatch):
    """Put back with checkpoint and key of that moment, it has every charge and knows no rows."""
    path = tmp_path / "l.db"
    ledger = Ledger.create(path, dataset="d", ceiling=Budget(1.0, 1e-6))
    model = PrivateLasso(1.0, 1e-6, bounds=BOUNDS, solver="frank-wolfe", steps=5, ledger=ledger)
    bind, old = Ledger.bind_rows, []

    def copying(self, run, code):
        old.extend([path.read_bytes(), copied(tmp_path / "fit", tmp_path / "old")])
        return bind(self, run, code)

    monkeypatch.setattr(Ledger, "bind_rows", copying)
    model.fit(X, Y, checkpoint=tmp_path / "fit")
    monkeypatch.undo()
    path.write_bytes(old[0])
    with pytest.raises(LedgerError, match="rolled back"):
        model.fit(np.where(X == 0, 0.5, X), Y, checkpoint=old[1])


def test_targets_of_minus_zero_are_the_same_rows(tmp_path):
    model = PrivateLasso(1.0, 1e-6, bounds=BOUNDS, solver="frank-wolfe", steps=5)
    y = np.where(np.abs(Y) < 0.2, 0.0, Y)
    begin(model, X, y, tmp_path / "fit", releases=2)
    minus = np.where(y == 0, -0.0, y)
    model.fit(np.where(X == 0, -0.0, X), minus, checkpoint=tmp_path / "fit")


@pytest.mark.parametrize("engine", ["numpy", "scan", "disk"])
def test_rows_of_people_are_the_same_in_every_engine(engine, tmp_path):
    frame = pd.DataFrame({"id": np.arange(N) % 200, "x": X[:, 0], "y": Y})
    schema = Schema.from_table({
        "person": "id", "rows_of_a_person": 2,
        "features": [{"name": "x", "kind": "number", "bounds": [-1, 1]}],
        "target": {"name": "y", "bounds": [-1, 1]},
    })  # fmt: skip
    model = PrivateLasso(1.0, 1e-6)
    begin(model, read(frame, schema), None, tmp_path / "fit", releases=2)
    model.set_params(engine=engine).fit(read(frame, schema), checkpoint=tmp_path / "fit")


def test_another_kind_of_processor_is_refused(tmp_path, monkeypatch):
    """A solver's arithmetic between releases may differ there in its last digit."""
    model = PrivateLasso(1.0, 1e-6, bounds=BOUNDS)
    begin(model, X, Y, tmp_path / "fit", releases=2)
    monkeypatch.setattr("riata.fitting.planning.machine", lambda: {"processor": "another"})
    with pytest.raises(CheckpointError, match="machine"):
        model.fit(X, Y, checkpoint=tmp_path / "fit")


def test_a_key_that_was_there_before_is_made_anew(tmp_path):
    key = tmp_path / "fit.key"
    key.write_bytes(b"x" * 32)
    key.chmod(0o666)
    begin(PrivateLasso(1.0, 1e-6, bounds=BOUNDS), X, Y, tmp_path / "fit")
    assert key.stat().st_mode & 0o777 == 0o600
    seen = tmp_path / "seen"
    seen.write_bytes(b"")
    (tmp_path / "other.key").symlink_to(seen)
    begin(PrivateLasso(1.0, 1e-6, bounds=BOUNDS), X, Y, tmp_path / "other")
    assert seen.read_bytes() == b""


def test_a_run_destroys_no_key_but_its_own(tmp_path):
    one, two = tmp_path / "fit", tmp_path / "two"
    first = Checkpoint(one, "1", {})
    two.with_name("two.key").write_bytes(b"k" * 32)
    os.replace(two.with_name("two.key"), one.with_name("fit.key"))
    first.close(over=True)
    assert one.with_name("fit.key").read_bytes() == b"k" * 32


def test_a_target_whose_halves_differ_by_a_prime_is_another_target(tmp_path):
    """An earlier digest was modulo 2^31 - 1 of 32 bits at a time: no key told these apart."""
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", ceiling=Budget(1.0, 1e-6))
    model = PrivateLasso(1.0, 1e-6, bounds=BOUNDS, ledger=ledger)
    y = Y.copy()
    y[0] = 0.5
    begin(model, X, y, tmp_path / "fit")
    for apart in ((2**31 - 1) << 32, 2**31 - 1):
        other = y.copy()
        other[:1] = (y[:1].view(np.uint64) + np.uint64(apart)).view(np.float64)
        assert 0 < np.abs(other[0] - y[0]) < 1.0
        with pytest.raises(CheckpointError, match="other rows"):
            model.fit(X, other, checkpoint=copied(tmp_path / "fit", tmp_path / "copy"))
    model.fit(X, y, checkpoint=tmp_path / "fit")
    assert len(ledger.charges) == 1


QUALITY = Schema.from_table({
    "features": [
        {"name": "age", "kind": "number", "bounds": [0, 100], "knots": 0},
        {"name": "ward", "kind": "choice", "choices": ["a", "b"]},
    ],
    "target": {"name": "y", "classes": ["no", "yes"]},
})  # fmt: skip


def wards(age=None):
    rng = np.random.default_rng(1)
    ages = rng.uniform(0, 100, N)
    ages[0] = 100.0 if age is None else age
    return pd.DataFrame(
        {"age": ages, "ward": rng.choice(["a", "b"], N), "y": rng.choice(["no", "yes"], N)}
    )


def counted(**how):
    return PrivateLogisticRegression(1.0, 1e-6, data_quality=True, **how)


def assert_flags_are_bound(engine, folder):
    ledger = Ledger.create(folder / "l.db", dataset="d", ceiling=Budget(1.0, 1e-6))
    model = counted(ledger=ledger, engine=engine)
    begin(model, read(wards(), QUALITY), None, folder / "fit")
    # Clipped to the same row as 100, but outside.
    for source in (read(wards(120.0), QUALITY), read(wards(float("inf")), QUALITY)):
        with pytest.raises(CheckpointError, match="other rows"):
            model.fit(source, checkpoint=copied(folder / "fit", folder / "copy"))
    runs = []
    for name in ("numpy", engine):
        copy = copied(folder / "fit", folder / f"same {name}")
        model.set_params(engine=name).fit(read(wards(), QUALITY), checkpoint=copy)
        runs.append(released(copy))
    assert_same(*runs)
    assert len(ledger.charges) == 1


@pytest.mark.filterwarnings("ignore::riata.errors.DataQualityWarning")
@pytest.mark.parametrize("engine", ["numpy", "scan", "disk"])
def test_rows_with_other_flags_are_other_rows(engine, tmp_path):
    """What is counted beside the fit is a second view of the rows, with other things in it."""
    assert_flags_are_bound(engine, tmp_path)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::riata.errors.DataQualityWarning")
def test_rows_with_other_flags_are_other_rows_at_workers(tmp_path):
    with cluster():
        assert_flags_are_bound("dask", tmp_path)


@pytest.mark.filterwarnings("ignore::riata.errors.DataQualityWarning")
def test_a_run_that_is_over_has_its_counts_without_a_row(tmp_path):
    first = counted().fit(read(wards(), QUALITY), checkpoint=tmp_path / "fit")
    again = counted().fit(read(wards(120.0), QUALITY), checkpoint=tmp_path / "fit")
    assert again.data_quality_ == first.data_quality_
    assert np.array_equal(again.coef_, first.coef_)


def test_a_file_that_met_other_rows_without_a_ledger_is_refused_by_it(tmp_path):
    """A copy from before rows were read meets other rows, and then comes to the ledger."""
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", ceiling=Budget(1.0, 1e-6))
    model = PrivateLasso(1.0, 1e-6, bounds=BOUNDS, solver="frank-wolfe", steps=5, ledger=ledger)
    begin(model, X, Y, tmp_path / "fit")
    key = tmp_path / "fit.key"
    early = copied(tmp_path / "fit", tmp_path / "early")
    early.with_name("fit.key").write_bytes(key.read_bytes()[:32])
    begin(model.set_params(ledger=None), -X, Y, early, releases=1)
    with pytest.raises(CheckpointError, match="other rows"):
        model.set_params(ledger=ledger).fit(-X, Y, checkpoint=early)
    model.fit(X, Y, checkpoint=tmp_path / "fit")
    assert len(ledger.charges) == 1


def test_a_ledger_is_told_of_no_rows_that_the_file_does_not_know(tmp_path):
    """A mistake must not bind the run to other rows: the right ones would be refused then."""
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", ceiling=Budget(1.0, 1e-6))
    model = PrivateLasso(1.0, 1e-6, bounds=BOUNDS, solver="frank-wolfe", steps=5)
    begin(model, X, Y, tmp_path / "fit", releases=1)
    model.set_params(ledger=ledger)
    with pytest.raises(CheckpointError, match="other rows"):
        model.fit(-X, Y, checkpoint=tmp_path / "fit")
    model.fit(X, Y, checkpoint=tmp_path / "fit")
    assert len(ledger.charges) == 1


@pytest.mark.parametrize("change", ["weight", "exposure", "target", "weight for exposure"])
def test_rows_with_other_weights_are_other_rows(change, tmp_path):
    """Weights and exposures are protected with their rows, and bound with them."""
    model = PrivatePoissonRegression(
        1.0, 1e-6, bounds=Bounds(1.0, 3.0), max_weight=2.0, max_exposure=4.0
    )
    counts = np.clip(np.rint(3 * np.abs(Y)), 0, 3)
    given = {"sample_weight": np.ones(N), "exposure": np.full(N, 0.5)}
    other = {name: values.copy() for name, values in given.items()}
    targets = counts.copy()
    if change == "target":
        targets[7] += 1e-3
    if "weight" in change:
        other["sample_weight"][7] += 1e-4
    if "exposure" in change:
        other["exposure"][7] *= 1.01
    begin_with(model, X, counts, tmp_path / "fit", given)
    copy = copied(tmp_path / "fit", tmp_path / "copy")
    with pytest.raises(CheckpointError, match="other rows"):
        model.fit(X, targets, **other, checkpoint=copy)
    model.fit(sparse.csr_array(X), counts, **given, checkpoint=tmp_path / "fit")


@pytest.mark.filterwarnings("ignore::riata.errors.DataQualityWarning")
@pytest.mark.parametrize("engine", ["scan", "disk"])
def test_flags_of_people_are_bound_too(engine, tmp_path):
    schema = Schema.from_table({**QUALITY.table(), "person": "id", "rows_of_a_person": 2})
    frames = [wards(age).assign(id=np.arange(N) % 400) for age in (None, 120.0)]
    frames.append(frames[0].assign(id=np.minimum(np.arange(N), 399)))  # and as many people
    for frame in frames:
        frame.loc[frame.index % 400 == 0, "age"] = frame.loc[0, "age"]  # all rows of a person
    ledger = Ledger.create(
        tmp_path / "l.db", dataset="d", ceiling=Budget(1.0, 1e-6, "replace-person"), person="id"
    )
    model = counted(ledger=ledger)
    begin(model, read(frames[0], schema), None, tmp_path / "fit", releases=1)
    for frame in frames[1:]:
        copy = copied(tmp_path / "fit", tmp_path / "copy")
        with pytest.raises(CheckpointError, match="other rows"):
            model.fit(read(frame, schema), checkpoint=copy)
    model.set_params(engine=engine).fit(read(frames[0], schema), checkpoint=tmp_path / "fit")
    assert len(ledger.charges) == 1
