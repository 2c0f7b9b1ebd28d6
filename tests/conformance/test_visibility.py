"""The comparison of what is visible can fail: each twin shows a row in one way, and is noticed."""

import logging
import os
import sys
import threading
import warnings
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from test_nothing_visible_depends_on_a_row import left_of

from riata import PrivateLasso
from riata.solvers.plan import Plan

from model_cases import BOUNDS, ESTIMATORS, labels_for
from neighbours import CONTAINERS, neighbours
from visibility import Releases, differences, frozen, seen


def warn(model, x, folder):
    if np.isnan(x).any():
        warnings.warn("There are missing values.", stacklevel=2)


def warn_once_a_row(model, x, folder):
    for _ in range(np.count_nonzero((x != 0).any(axis=1))):
        warnings.warn("A row is not 0.", stacklevel=2)


def warn_in_another_category(model, x, folder):
    category = RuntimeWarning if (x != 0).any() else UserWarning
    warnings.warn("Something is odd.", category, stacklevel=2)


def warn_in_a_thread(model, x, folder):
    thread = threading.Thread(target=warn, args=(model, x, folder))
    thread.start()
    thread.join()


def warn_of_an_overflow(model, x, folder):
    x.astype(np.float16)


def fail(model, x, folder):
    if np.isinf(x).any():
        raise ValueError("There are infinite values.")


def fail_with_another_type(model, x, folder):
    raise (KeyError if (x != 0).any() else ValueError)("Something is odd.")


def fail_with_a_value(model, x, folder):
    raise ValueError(f"The largest value is {x.max()}.")


def fail_with_a_cause(model, x, folder):
    try:
        raise KeyError(str(x.max()))
    except KeyError as error:
        raise ValueError("Something is odd.") from error


def log(model, x, folder):
    logging.getLogger("riata.twin").debug("%d entries", np.count_nonzero(x))


def print_out(model, x, folder):
    print(np.count_nonzero(x))


def print_error(model, x, folder):
    print(np.count_nonzero(x), file=sys.stderr)


def write_to_a_descriptor(model, x, folder):
    os.write(1, str(np.count_nonzero(x)).encode())


def progress_by_entries(model, x, folder):
    from rich.progress import Progress

    with Progress() as progress:
        progress.add_task("rows", total=np.count_nonzero(x))


def progress_in_moves(model, x, folder):
    from rich.progress import Progress

    with Progress() as progress:
        task = progress.add_task("rows", total=len(x))
        for _ in range(np.count_nonzero((x != 0).any(axis=1))):
            progress.advance(task, 1)


def keep_a_number(model, x, folder):
    model._largest = x.max()


def keep_a_shape(model, x, folder):
    model.levels_ = np.zeros(len(np.unique(x)))


def keep_a_type(model, x, folder):
    model.scale_ = np.zeros(2, dtype=np.float64 if (x != 0).any() else np.int64)


def keep_sometimes(model, x, folder):
    if (x != 0).any():
        model.scale_ = 1.0


def state_a_note(model, x, folder):
    note = f"{np.isnan(x).sum()} values were missing."
    model.privacy_ = replace(model.privacy_, notes=(note,))


def name_a_file(model, x, folder):
    (folder / f"{np.count_nonzero(x)}.txt").write_text("")


def fill_a_file(model, x, folder):
    (folder / "rows.txt").write_text("x" * np.count_nonzero(x))


def release_more(model, x, folder):
    if (x != 0).any():
        PrivateLasso(1.0, 0.0, bounds=BOUNDS, steps=1).fit(x, np.zeros(len(x)))


def release_with_other_noise(model, x, folder):
    epsilon = 2.0 if (x != 0).any() else 1.0
    PrivateLasso(epsilon, 0.0, bounds=BOUNDS, steps=1).fit(x, np.zeros(len(x)))


def choose_an_engine(model, x, folder):
    engine = "scan" if (x != 0).any() else "numpy"
    PrivateLasso(1.0, 0.0, bounds=BOUNDS, engine=engine, steps=1).fit(x, np.zeros(len(x)))


#: What each of them shows a row by, and nothing else.
TWINS = {
    choose_an_engine: "releases",
    fail: "error",
    fail_with_a_cause: "error",
    fail_with_a_value: "error",
    fail_with_another_type: "error",
    fill_a_file: "files",
    keep_a_number: "left",
    keep_a_shape: "left",
    keep_a_type: "left",
    keep_sometimes: "left",
    log: "log lines",
    name_a_file: "files",
    print_error: "streams",
    print_out: "streams",
    progress_by_entries: "progress",
    progress_in_moves: "progress",
    release_more: "releases",
    release_with_other_noise: "releases",
    state_a_note: "left",
    warn: "warnings",
    warn_in_a_thread: "warnings",
    warn_in_another_category: "warnings",
    warn_of_an_overflow: "warnings",
    warn_once_a_row: "warnings",
    write_to_a_descriptor: "streams",
}


def noticed(make, kept="nothing"):
    """The kinds of differences between zeros and their neighbours."""
    rows, others = neighbours(CONTAINERS["float64, C"], None, "zeros")
    releases, found = Releases(), set()

    def run(rows):
        return lambda folder: left_of(make(folder), folder, kept, rows.x, rows.y)

    before = seen(run(rows), releases)
    for other in others:
        found |= set(differences(before, seen(run(other), releases)))
    return found


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.__name__)
def test_a_twin_is_noticed(twin):
    def make(folder):
        class Twin(PrivateLasso):
            def fit(self, X, y):
                super().fit(X, y)
                twin(self, X, folder)

        return Twin(1.0, 0.0, bounds=BOUNDS, steps=1)

    assert noticed(make) - {"left" if twin is fail else ""} == {TWINS[twin]}


def test_a_prediction_of_another_type_is_noticed():
    class Twin(PrivateLasso):
        def predict(self, X):
            return super().predict(X).astype(">f8" if (X != 0).any() else "<f8")

    assert noticed(lambda folder: Twin(1.0, 0.0, bounds=BOUNDS, steps=1)) == {"left"}


def test_a_charge_that_tells_of_rows_is_noticed():
    summary, rows = Plan.summary, []

    class Twin(PrivateLasso):
        def fit(self, X, y):
            rows[:] = [X]
            return super().fit(X, y)

    def told(self):
        return summary(self) | {"entries": int(np.count_nonzero(rows[0]))}

    with mock.patch.object(Plan, "summary", told):
        found = noticed(lambda folder: Twin(1.0, 0.0, bounds=BOUNDS, steps=1), "ledger")
    assert found == {"left"}


@pytest.mark.parametrize("name", ["lasso, pure", "logistic", "logistic, rows of bounded length"])
@pytest.mark.parametrize("kept", ["ledger", "checkpoint", "nothing"])
def test_one_set_of_rows_looks_like_itself(name, kept):
    # Twice the same rows, with noise that differs: there is nothing to notice.
    rows, _ = neighbours(CONTAINERS["float64, C"], labels_for(name), "ordinary")
    releases = Releases()

    def run(folder):
        model = ESTIMATORS[name](bounds=BOUNDS, verbose=True)
        return left_of(model, folder, kept, rows.x, rows.y)

    assert differences(seen(run, releases), seen(run, releases)) == {}


def test_what_is_left_is_compared_to_the_bit():
    same = [np.array([0.0, 1.0]), {"a": (1, None)}, "text", {3, 1}, np.array(["x", None], object)]
    assert frozen(same) == frozen(
        [value.copy() if hasattr(value, "copy") else value for value in same]
    )
    for one, other in (
        (0.0, -0.0),
        (np.array([0.0]), np.array([-0.0])),
        (np.float32(1), np.float64(1)),
        ([1], (1,)),
        ({"a": 1}, {"a": 1, "b": 2}),
        (np.zeros((2, 1)), np.zeros((1, 2))),
        (np.array(["x", None], object), np.array(["y", None], object)),
    ):
        assert frozen(one) != frozen(other)
    assert frozen(np.zeros(2), values=False) == frozen(np.ones(2), values=False)
