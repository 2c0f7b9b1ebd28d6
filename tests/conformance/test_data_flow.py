"""The figures of the architecture page: fits call the modules in the order that is drawn.

A profiler notes when each function of riata is called for the first time.
"""

import importlib.util
import re
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from riata import Bounds, Budget, Ledger, PrivateLasso, PrivateLogisticRegression

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "riata"


def load_figures():
    path = ROOT / "tools" / "draw_data_flow.py"
    spec = importlib.util.spec_from_file_location("draw_data_flow", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["draw_data_flow"] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    return module


figures = load_figures()


@contextmanager
def first_calls():
    """A dict from (module, function) to its place in the order of first calls."""
    calls = {}
    prefix = f"{SOURCE}/"

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(prefix):
            key = (frame.f_code.co_filename[len(prefix) :], frame.f_code.co_name)
            calls.setdefault(key, len(calls))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(before)


def steps(flow):
    return [step for phase in flow.phases for step in phase.steps]


def check_order(flow, calls):
    keys = [(step.module, step.function) for step in steps(flow)]
    assert [key for key in keys if key not in calls] == []
    assert sorted(keys, key=calls.get) == keys


@pytest.mark.parametrize("flow", figures.FLOWS, ids=lambda flow: flow.name)
def test_the_file_is_what_the_program_draws(flow):
    assert figures.picture(flow).read_text(encoding="utf-8") == figures.drawn(flow)


@pytest.mark.parametrize("flow", figures.FLOWS, ids=lambda flow: flow.name)
def test_every_function_of_a_figure_exists(flow):
    for step in steps(flow):
        text = (SOURCE / step.module).read_text(encoding="utf-8")
        assert re.search(rf"\b(?:def|function) {step.function}\(", text), step


def test_a_dense_fit():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3_000, 60))
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(2.0, 1e-6))
    model = PrivateLasso(1.0, 1e-6, bounds=Bounds(x=1.0, y=1.0), ledger=ledger)
    with first_calls() as calls:
        model.fit(X, 0.6 * X[:, 3])
    check_order(figures.DENSE, calls)


def test_a_wide_sparse_logistic_fit():
    rng = np.random.default_rng(0)
    X = sparse.random_array((20_000, 5_000), density=0.01, rng=rng, format="csr")
    y = (X[:, [5]].toarray().ravel() > 0).astype(int)
    model = PrivateLogisticRegression(3.0, 1e-6, bounds=Bounds(x=1.0), classes=[0, 1])
    with first_calls() as calls:
        model.fit(X, y)
    check_order(figures.SPARSE, calls)


SCHEMA = """
person = "id"
rows_of_a_person = 1

[[features]]
name = "age"
kind = "number"
bounds = [0, 110]

[target]
name = "cost"
bounds = [0, 1000]
"""


def test_a_fit_of_people_on_dask(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    polars = pytest.importorskip("polars")
    from typer.testing import CliRunner

    from riata.cli.main import app

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    Path("rows").mkdir()
    for name in ("a", "b"):
        columns = {"id": 400, "age": 90, "cost": 900}
        frame = polars.DataFrame({c: rng.integers(0, high, 1_000) for c, high in columns.items()})
        frame.write_parquet(f"rows/{name}.parquet")
    Path("people.toml").write_text(SCHEMA)
    make = "ledger create l.db --dataset d --epsilon 2 --delta 1e-6 --adjacency replace-person"
    fit = "fit --schema people.toml --data rows --epsilon 1 --delta 1e-6 --ledger l.db --out m"
    run = CliRunner()
    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        run.invoke(app, make.split(), catch_exceptions=False)
        with first_calls() as calls:
            command = [*fit.split(), "--engine", "dask", "--yes"]
            done = run.invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0
    check_order(figures.DASK, calls)
