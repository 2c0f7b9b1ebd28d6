"""Nothing that a person can see of a fit depends on a row, except through what is released.

Every estimator is fitted with every engine on every container of degenerate rows, and on neighbours
that differ from them by one hostile row. The neighbour's run is given the releases of the first, so
all the rest must be equal: errors, warnings, log lines, streams, progress, attributes, files, the
ledger and the shape and type of every release. `make test` compares some pairs, `make audit` all.
"""

import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from riata import (
    Budget,
    Ledger,
    LocalKernelRidge,
    LocalLasso,
    LocalLogisticRegression,
    LocalSparseMean,
    PrivateErm,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateSearch,
    PrivateSparseRegression,
    read,
)
from riata.data.people import PeopleSource
from riata.data.source import Source
from riata.engines import choice
from riata.losses import Huber
from riata.sets import L1Ball

import file_neighbours
from model_cases import BOUNDS, ESTIMATORS, LENGTH, labels_for
from neighbours import CONTAINERS, SCENES, neighbours
from visibility import Releases, differences, frozen, seen

ENGINES = ("auto", "numpy", "scan", "disk", "numba")
KEPT = ("ledger", "checkpoint", "nothing")


@dataclass(frozen=True)
class Case:
    """An estimator, and what it is fitted with."""

    make: Any
    labels: list | None = None
    engines: tuple[str | None, ...] = ENGINES


def _central(name):
    def make(engine):
        return ESTIMATORS[name](bounds=BOUNDS, engine=engine, verbose=True)

    return Case(make, labels_for(name))


def _searched(estimator, **options):
    def make(engine):
        common = {"engine": engine, "solver": "frank-wolfe", "steps": 2} | options
        tried = estimator(None, bounds=BOUNDS, **common)
        grid = {"radius": [0.5, 1.0]}
        return PrivateSearch(tried, grid, 1.0, 0.0, expected=2, random_state=3, verbose=True)

    return make


def _local(estimator, labels=None, **options):
    def make(engine):
        return estimator(1.0, bounds=LENGTH, verbose=True, **options)

    return Case(make, labels, (None,))


TWO = ["no", "yes"]
CASES = {name: _central(name) for name in ESTIMATORS} | {
    "search": Case(_searched(PrivateLasso)),
    "search, labels": Case(_searched(PrivateLogisticRegression, classes=TWO), TWO),
    "local mean": _local(LocalSparseMean),
    "local lasso": _local(LocalLasso),
    "local kernel": _local(LocalKernelRidge, pairs=4),
    "local labels": _local(LocalLogisticRegression, TWO, classes=TWO),
}


def left_of(model, folder, kept, x, *y):
    """A fit and a prediction, and all that is left of them."""
    left, options = {}, {}
    central = hasattr(model, "ledger")
    if kept == "ledger" and central and model.random_state is None:
        adjacency = "replace-person" if isinstance(x, PeopleSource) else "replace-one"
        ceiling = Budget(9.0, 1e-3, adjacency)
        model.ledger = Ledger.create(":memory:", dataset="claims", ceiling=ceiling)
    if kept == "checkpoint" and central and not isinstance(model, PrivateSearch):
        options["checkpoint"] = folder / "run.ckpt"
    model.fit(x, *y, **options)
    if central and model.ledger is not None:
        left["charges"] = [(str(charge.event), charge.summary) for charge in model.ledger.charges]
        model.ledger = None
    left |= {"attributes": vars(model), "statement": str(model.privacy_)}
    if hasattr(model, "predict") and not isinstance(x, PeopleSource):  # whose rows are public
        left["predictions"] = frozen(model.predict(x), values=False)
    return left


@contextmanager
def small_blocks():
    """Rows are read in several blocks, few as they are."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(Source.blocks, "__defaults__", (7,)))
        stack.enter_context(mock.patch.object(choice, "_ROWS_AT_ONCE", 7))
        yield


def compare(make, first, others, about):
    """How many pairs there were, after the assertion that none of them differs.

    `make` is called with rows, and returns what is to be run on them.
    """
    releases = Releases()
    with small_blocks():
        before = seen(make(first), releases)
        assert "error" not in before, (*about, before["error"])
        for other in others:
            assert differences(before, seen(make(other), releases)) == {}, (*about, other)
    return len(others)


def cells(name):
    """Every container, with an engine, a scene, and what is kept beside the model, in turn."""
    case, turn = CASES[name], list(CASES).index(name)
    for place, kind in enumerate(CONTAINERS):
        at = place + turn
        yield (
            kind,
            case.engines[at % len(case.engines)],
            KEPT[at % len(KEPT)],
            SCENES[at % len(SCENES)],
        )


def compare_cell(name, kind, engine, kept, scene):
    case = CASES[name]
    rows, others = neighbours(CONTAINERS[kind], case.labels, scene)

    def make(rows):
        return lambda folder: left_of(case.make(engine), folder, kept, rows.x, rows.y)

    return compare(make, rows, others, (name, kind, engine, kept))


def cell_of(name):
    """The one of the cells that is compared in the short run."""
    every = list(cells(name))
    return every[8 * list(CASES).index(name) % len(every)]


@pytest.mark.matrix(one_in=3)
@pytest.mark.parametrize("name", CASES)
def test_no_row_in_memory_shows(name):
    assert compare_cell(name, *cell_of(name)) >= 3


@pytest.mark.matrix(one_in=3)
@pytest.mark.parametrize("kind", ["float64, C", "CSR", "CSC"])
def test_a_row_alone_among_zeros_does_not_show_on_disk(kind):
    for scene in ("zeros", "alone"):
        assert compare_cell("lasso", kind, "disk", "ledger", scene) == 10


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_no_row_in_memory_shows_in_any_container(name):
    assert sum(compare_cell(name, *cell) for cell in cells(name)) >= 400


# Files and frames with a schema.

FROM_SOURCES = {
    "lasso": lambda **how: PrivateLasso(1.0, 1e-6, **how),
    "sparse": lambda **how: PrivateSparseRegression(1.0, 1e-6, sparsity=2, **how),
    "huber": lambda **how: PrivateErm(Huber(0.5), L1Ball(1.0), 1.0, 1e-6, steps=2, **how),
    "logistic": lambda **how: PrivateLogisticRegression(1.0, 1e-6, **how),
    "support vectors": lambda **how: PrivateLinearSVC(1.0, 1e-6, **how),
}
#: The same with counts of what is wrong with the rows, of files with named columns.
COUNTED = {
    "lasso, counted": lambda **how: PrivateLasso(1.0, 1e-6, data_quality=True, **how),
    "logistic, counted": lambda **how: PrivateLogisticRegression(
        1.0, 1e-6, data_quality=True, **how
    ),
}


def compare_sources(name, kind, engine, kept):
    rows, others = file_neighbours.neighbours(kind)
    labels = ("logistic", "logistic, counted", "support vectors")
    table = file_neighbours.schema(kind, name in labels)
    return _compare_files(
        name, engine, kept, file_neighbours.KINDS[kind].write, table, rows, others, kind
    )


def compare_people(name, engine, kept, k):
    table, rows, others = file_neighbours.people(k)
    return _compare_files(
        name, engine, kept, file_neighbours.write_people, table, rows, others, f"{k} of a person"
    )


def _compare_files(name, engine, kept, write, table, rows, others, about):
    with tempfile.TemporaryDirectory() as folder:

        def make(rows):
            source = read(write(rows, Path(folder)), table)
            model = (FROM_SOURCES | COUNTED)[name](engine=engine, verbose=True)
            return lambda folder: left_of(model, folder, kept, source)

        return compare(make, rows, others, (name, about, engine, kept))


def source_cells(every):
    """Every kind of file with every estimator, or each in turn."""
    names = list(FROM_SOURCES)
    for place, kind in enumerate(file_neighbours.KINDS):
        for shift in range(len(names) if every else 1):
            at = place + shift
            name = names[at % len(names)]
            yield name, kind, ENGINES[(at + shift) % len(ENGINES)], KEPT[at % len(KEPT)]


@pytest.mark.matrix(one_in=3)
@pytest.mark.parametrize(("name", "kind", "engine", "kept"), list(source_cells(False)))
def test_no_row_of_a_file_shows(name, kind, engine, kept):
    assert compare_sources(name, kind, engine, kept) >= 7


@pytest.mark.parametrize(
    ("name", "kind", "engine", "kept"),
    [
        ("logistic, counted", "CSV", "auto", "ledger"),
        ("lasso, counted", "polars, times", "disk", "checkpoint"),
    ],
)
def test_no_row_of_a_file_shows_in_counts(name, kind, engine, kept):
    assert compare_sources(name, kind, engine, kept) >= 7


@pytest.mark.slow
@pytest.mark.parametrize("kind", file_neighbours.KINDS)
def test_no_row_of_a_file_shows_to_any_estimator(kind):
    for cell in source_cells(True):
        if cell[1] == kind:
            compare_sources(*cell)


@pytest.mark.parametrize(
    ("name", "engine", "kept", "k"),
    [("lasso", "auto", "nothing", 1), ("huber", "disk", "checkpoint", 3)],
)
def test_no_person_of_a_file_shows(name, engine, kept, k):
    assert compare_people(name, engine, kept, k) == 2 * len(file_neighbours.OF_PEOPLE)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["lasso", "sparse", "huber"])
def test_no_person_of_a_file_shows_to_any_estimator(name, engine):
    for k, kept in enumerate(KEPT, start=1):
        compare_people(name, engine, kept, k)


# Workers, in threads of this process, so that what they say is heard.


@pytest.fixture(scope="module")
def workers():
    from dask import config
    from distributed import Client, LocalCluster

    quiet = {"logging.distributed": "critical", "distributed.worker.profile.enabled": False}
    with (
        config.set(quiet),
        LocalCluster(2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["float64, C", "float32", "longdouble", "objects", "CSR", "CSC"])
@pytest.mark.parametrize("name", ["lasso", "logistic", "sparse, split"])
def test_no_row_in_memory_shows_to_workers(workers, name, kind):
    assert compare_cell(name, kind, "dask", "nothing", "zeros")


# How much is compared.


def _pairs(name, kind, *rest):
    return len(CONTAINERS[kind].hostile)


def test_so_many_pairs_are_compared():
    of_files = [len(file_neighbours.KINDS[kind].hostile) for _, kind, *_ in source_cells(False)]
    of_people = 2 * 2 * len(file_neighbours.OF_PEOPLE)
    short = sum(_pairs(name, *cell_of(name)) for name in CASES) + sum(of_files) + of_people
    assert short >= 500
    assert sum(_pairs(name, *cell) for name in CASES for cell in cells(name)) >= 20_000
    covered = {(kind, engine) for name in CASES for kind, engine, *_ in cells(name)}
    assert covered >= {(kind, engine) for kind in CONTAINERS for engine in ENGINES}
