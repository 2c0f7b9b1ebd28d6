"""However an estimator reaches the place where it fits, its ledger counts every fit."""

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from riata import Budget, Ledger
from riata.privacy.accountants import spent
from riata.privacy.events import compose

from helpers import data, lasso, make, processes

pytestmark = pytest.mark.long

FITS = 4
X, Y = data()


def fit(model):
    return model.fit(X, Y)


def cloned(model):
    return [fit(clone(model)) for _ in range(FITS)]


def pickled(model):
    return [fit(pickle.loads(pickle.dumps(model))) for _ in range(FITS)]


def threads(model):
    with ThreadPoolExecutor(FITS) as pool:
        return list(pool.map(fit, [clone(model) for _ in range(FITS)]))


def spawned(model):
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(fit, [model] * FITS))


def joblib_processes(model):
    return Parallel(n_jobs=2, backend="loky")(delayed(model.fit)(X, Y) for _ in range(FITS))


def joblib_threads(model):
    return Parallel(n_jobs=2, backend="threading")(
        delayed(clone(model).fit)(X, Y) for _ in range(FITS)
    )


def searched(model):
    # two radii on one split, the refit, and one fit by hand
    search = GridSearchCV(
        model,
        {"radius": [0.5, 1.0]},
        cv=[(range(30), range(30, 60))],
        n_jobs=2,
        error_score="raise",
    )
    return [search.fit(X, Y).best_estimator_, fit(model)]


@pytest.mark.parametrize(
    "way",
    [cloned, pickled, threads, spawned, joblib_processes, joblib_threads, searched],
    ids=lambda way: way.__name__,
)
def test_every_fit_is_charged_once(way, tmp_path):
    ledger = make(tmp_path / "study.db", Budget(5.0, 1e-6))
    models = way(lasso(ledger))
    assert {model.ledger.path for model in models} == {ledger.path}
    check(ledger, FITS)


def test_every_fit_in_a_forked_process_is_charged_once(tmp_path):
    found = processes("fits", tmp_path, FITS)
    assert len(set(found["codes"])) == 1
    check(Ledger.open(found["path"], head=found["head"]), FITS)


def check(ledger, n):
    verified = ledger.verify()
    assert [c.seq for c in ledger.charges] == list(range(1, n + 1))
    total = compose(*((c.event, 1) for c in ledger.charges))
    assert verified.spent == ledger.spent == spent(total, 1e-6, adaptive=True)
    assert ledger.spent.epsilon > 0.1


def test_ten_fits_cost_what_the_accountant_says_of_them_together(tmp_path):
    ledger = make(tmp_path / "study.db", Budget(5.0, 1e-6))
    model = lasso(ledger)
    one = None
    for _ in range(10):
        fit(model)
        one = one or ledger.charges[0].event
    check(ledger, 10)
    assert ledger.spent == spent(compose((one, 10)), 1e-6, adaptive=True)
    assert ledger.spent.epsilon < 10 * 0.1  # composed, not summed
    assert ledger.charges[-1].total == pytest.approx(1e9 * ledger.spent.epsilon, abs=1)
