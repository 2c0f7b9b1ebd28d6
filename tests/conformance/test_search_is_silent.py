"""How many runs a search has shows nowhere: it is secret, and each run would say it again."""

import logging
import threading
import warnings
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from riata import (
    Bounds,
    Budget,
    Ledger,
    PrivateErm,
    PrivateLasso,
    PrivateLogisticRegression,
    PrivateSearch,
    read,
)
from riata.errors import InvalidArgument
from riata.fitting import running
from riata.losses import Huber
from riata.sets import L1Ball
from riata.tuning import search as module
from riata.tuning.suppression import suppressed_output

from visibility import frozen, seen

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (40, 3))
Y = X[:, 0]
NAMES = np.where(Y > 0, "yes", "no")
BOUNDS = Bounds(1.0, 1.0)
COMMON = {"bounds": BOUNDS, "solver": "frank-wolfe", "steps": 2}
LASSO = PrivateLasso(None, **COMMON, verbose=True)
HUBER = PrivateErm(Huber(0.5), L1Ball(1.0), None, **COMMON)
LOGISTIC = PrivateLogisticRegression(None, **COMMON, classes=["no", "yes"])
SCHEMA = {
    "features": [{"name": name, "kind": "number", "bounds": [-1, 1]} for name in "abc"],
    "target": {"name": "y", "bounds": [-1, 1]},
}
FRAME = pd.DataFrame(X, columns=list("abc"))
CASES = {
    "a column of targets": (LASSO, X, Y[:, None]),
    "a list": (LASSO, X.tolist(), Y.tolist()),
    "objects": (LASSO, X.astype(object), Y.astype(object)),
    "a frame": (LASSO, FRAME, pd.Series(Y)),
    "a frame of polars": (LASSO, pl.DataFrame(X, schema=list("abc")), pl.Series(Y)),
    "sparse columns of pandas": (LASSO, FRAME.astype(pd.SparseDtype(float, 0.0)), Y),
    "sparse": (LASSO, sparse.csr_array(X), Y),
    "a column of labels": (LOGISTIC, X, NAMES[:, None]),
    "a frame of labels": (LOGISTIC, FRAME, pd.DataFrame({"y": NAMES})),
    "another loss": (HUBER, X, Y[:, None]),
    "a source": (LASSO, read(FRAME.assign(y=Y), SCHEMA), None),
}


def noisy(solved):
    """A run that warns, logs and does both in another thread."""

    def loud():
        warnings.warn("A run.", RuntimeWarning, stacklevel=2)
        for name in ("riata", "riata.engines", "distributed.worker", "numba.core"):
            logging.getLogger(name).warning("A run.")

    def instead(self, *arguments, **options):
        loud()
        thread = threading.Thread(target=loud)
        thread.start()
        thread.join()
        return solved(self, *arguments, **options)

    return instead


def shown(estimator, x, y, runs, **options):
    """What is visible of a search with so many runs, without the values that are released."""
    ledger = Ledger.create(":memory:", dataset="claims", ceiling=Budget(9.0, 1e-3))

    def run(folder):
        grid = [{"engine": ["auto", "scan", "disk"]}]
        search = PrivateSearch(estimator, grid, 1.0, ledger=ledger, verbose=True, **options)
        search.fit(x, y)
        search.ledger = None
        winner = search.best_estimator_.set_params(engine="auto")
        search.best_params_ = None
        left = frozen({"search": vars(search), "model": vars(winner)}, values=False)
        return left, [(str(charge.event), charge.summary) for charge in ledger.charges]

    with (
        mock.patch.object(module, "geometric", return_value=runs),
        mock.patch.object(running, "solve", noisy(running.solve)),
    ):
        found = seen(run)
    assert len(found.pop("releases")) > 2 * runs  # selections and scores of every run
    return found


@pytest.mark.matrix(one_in=3)
@pytest.mark.parametrize("case", CASES)
def test_the_number_of_runs_shows_nowhere(case):
    once = shown(*CASES[case], 1)
    assert "error" not in once
    assert once["log lines"] == []
    assert once["progress"] == []
    assert len(once["warnings"]) <= 1
    assert shown(*CASES[case], 2) == once
    assert shown(*CASES[case], 7) == once


def test_what_public_facts_say_is_said_once():
    with pytest.warns(DataConversionWarning) as caught:
        PrivateSearch(LASSO, {"radius": [0.5, 1.0]}, 1.0).fit(X, Y[:, None])
    assert len(caught) == 1


def test_a_winner_knows_the_names_of_its_columns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = PrivateSearch(LASSO, {"radius": [0.5, 1.0]}, 1.0).fit(FRAME, Y)
        assert list(search.feature_names_in_) == list(search.best_estimator_.feature_names_in_)
        assert search.predict(FRAME).shape == (40,)
        assert search.best_estimator_.predict(FRAME).shape == (40,)
    with pytest.raises(ValueError, match="feature names"):
        search.predict(FRAME.rename(columns={"a": "z"}))


def heard():
    """Whether a warning and a log line come through."""

    def run(folder):
        warnings.warn("heard", stacklevel=1)
        logging.getLogger("riata").warning("heard")

    found = seen(run)
    return len(found["warnings"]), len(found["log lines"])


def test_silence_ends_with_the_last_search():
    first, second = suppressed_output(), suppressed_output()
    assert heard() == (1, 1)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)  # not the one that began last, as in two threads
    assert heard()[1] == 0
    second.__exit__(None, None, None)
    assert heard() == (1, 1)


def test_silence_ends_with_an_error():
    with pytest.raises(InvalidArgument), suppressed_output():
        raise InvalidArgument
    assert heard() == (1, 1)
