"""A fit that is stopped goes on where it was, and nothing is released or charged twice."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest
from scipy import sparse

from riata import Bounds, Budget, Ledger, PrivateErm, PrivateLasso, PrivateLogisticRegression
from riata.checkpoint import Checkpoint
from riata.curator import Curator
from riata.errors import CheckpointError
from riata.losses import Squared
from riata.mechanisms import Mechanism
from riata.mechanisms.engine import Engine
from riata.mechanisms.noise import Noise
from riata.privacy.events import Gaussian, Pure, compose
from riata.release_text import release_from_text, release_to_text
from riata.sets import L2Ball
from riata.solvers import private_frank_wolfe
from riata.vectors import Vector

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (400, 20)) * (RNG.uniform(size=(400, 20)) < 0.5)
Y = 0.8 * X[:, 2] + 0.1 * RNG.standard_normal(400)
BOUNDS = Bounds(x=1.0, y=1.0)


def lasso(**how):
    return PrivateLasso(2.0, 1e-5, bounds=BOUNDS, **{"solver": "frank-wolfe", "steps": 12, **how})


class Stop(BaseException):
    """As Ctrl-C: no ordinary exception."""


def stopped_at(monkeypatch, number):
    """The release with this number is never made."""
    made = [0]
    release = Curator.release

    def counted(self, *query):
        if made[0] == number:
            raise Stop
        made[0] += 1
        return release(self, *query)

    monkeypatch.setattr(Curator, "release", counted)


@pytest.mark.matrix(one_in=3)
@pytest.mark.parametrize(
    ("model", "y"),
    [
        (lasso(random_state=3), Y),
        (lasso(random_state=3, engine="scan"), Y),
        (lasso(random_state=3, solver="auto", steps="auto"), Y),
        (lasso(random_state=3, solver="objective-perturbation", steps="auto"), Y),
        (lasso(random_state=3, solver="gaussian-frank-wolfe"), Y),
        (
            PrivateLogisticRegression(
                1.0, 1e-6, bounds=BOUNDS, classes=[0, 1, 2], class_weight="balanced", random_state=3
            ),
            RNG.integers(0, 3, 400),
        ),
        (
            PrivateErm(
                Squared(), L2Ball(1.0), 1.0, 1e-6, bounds=Bounds(1.0, 1.0, norm="l2"),
                solver="noisy-gradient", steps=9, random_state=3,
            ),
            Y,
        ),
    ],
    ids=["selections", "scan", "refit", "one release", "gradients", "classes", "descent"],
)  # fmt: skip
def test_a_fit_that_was_stopped_ends_where_it_would_have_ended(model, y, tmp_path, monkeypatch):
    whole = model.fit(X, y, checkpoint=tmp_path / "whole")
    expected = (whole.coef_, whole.intercept_, whole.coef_error_, str(whole.privacy_))
    for number in (0, 1, 5):
        kept = tmp_path / f"stopped-{number}"
        with monkeypatch.context() as patched:
            stopped_at(patched, number)
            try:
                model.fit(X, y, checkpoint=kept)
            except Stop:
                pass
            else:
                assert number >= 1  # some fits have few releases
        again = model.fit(X, y, checkpoint=kept)
        found = (again.coef_, again.intercept_, again.coef_error_, str(again.privacy_))
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_array_equal(a, b)


def test_without_a_seed_what_was_released_before_stays(tmp_path, monkeypatch):
    kept = tmp_path / "fit"
    with monkeypatch.context() as patched:
        stopped_at(patched, 7)
        with pytest.raises(Stop):
            lasso().fit(X, Y, checkpoint=kept)
    before = kept.read_bytes()
    assert len(before.splitlines()) == 1 + 7
    lasso().fit(X, Y, checkpoint=kept)
    assert kept.read_bytes().startswith(before)
    assert not kept.with_name("fit.key").exists()


def test_a_copy_that_goes_on_too_repeats_the_same_releases(tmp_path, monkeypatch):
    """Two runs from one checkpoint would otherwise release twice what was charged once."""
    kept, copy = tmp_path / "fit", tmp_path / "copy"
    with monkeypatch.context() as patched:
        stopped_at(patched, 4)
        with pytest.raises(Stop):
            lasso(fit_intercept=True).fit(X, Y, checkpoint=kept)
    for end in ("", ".key"):
        copy.with_name("copy" + end).write_bytes(kept.with_name("fit" + end).read_bytes())
    first = lasso(fit_intercept=True).fit(X, Y, checkpoint=kept)
    second = lasso(fit_intercept=True).fit(X, Y, checkpoint=copy)
    assert kept.read_bytes() == copy.read_bytes()
    np.testing.assert_array_equal(first.coef_, second.coef_)
    assert first.intercept_ == second.intercept_


def test_two_runs_have_different_noise(tmp_path):
    models = [lasso().fit(X, Y, checkpoint=tmp_path / name) for name in ("one", "two")]
    assert models[0].intercept_ != models[1].intercept_


def test_a_run_that_goes_on_is_charged_once(tmp_path, monkeypatch):
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", ceiling=Budget(3.0, 1e-5))
    kept = tmp_path / "fit"
    for number in (0, 3):
        with monkeypatch.context() as patched:
            stopped_at(patched, number)
            with pytest.raises(Stop):
                lasso(ledger=ledger).fit(X, Y, checkpoint=kept)
    lasso(ledger=ledger).fit(X, Y, checkpoint=kept)
    lasso(ledger=ledger).fit(X, Y, checkpoint=kept)  # it is over: all answers are in the file
    assert len(ledger.charges) == 1
    assert (
        ledger.charges[0].summary["run"]
        == json.loads(kept.read_bytes().split(b" ", 1)[1].split(b"\n")[0])["id"]
    )
    other = tmp_path / "other"
    with pytest.raises(Exception, match="does not fit"):
        lasso(ledger=ledger).fit(X, Y, checkpoint=other)
    with pytest.raises(Exception, match="does not fit"):  # the file alone pays for nothing
        lasso(ledger=ledger).fit(X, Y, checkpoint=other)


def test_a_run_that_is_over_needs_no_row_and_no_key(tmp_path):
    kept = tmp_path / "fit"
    first = lasso().fit(X, Y, checkpoint=kept)
    again = lasso().fit(np.zeros_like(X), np.zeros_like(Y), checkpoint=kept)
    np.testing.assert_array_equal(first.coef_, again.coef_)
    assert first.intercept_ == again.intercept_


@pytest.mark.parametrize(
    "other",
    [
        lasso(steps=13), lasso(radius=2.0), lasso(fit_intercept=False), lasso(random_state=1),
        lasso(adjacency="add-remove"), lasso(solver="gaussian-frank-wolfe"),
        PrivateLasso(2.5, 1e-5, bounds=BOUNDS, solver="frank-wolfe", steps=12),
        PrivateLasso(2.0, 1e-5, bounds=Bounds(2.0, 1.0), solver="frank-wolfe", steps=12),
        PrivateLasso(2.0, 1e-5, bounds=Bounds([1.0] * 20, 1.0), solver="frank-wolfe", steps=12),
    ],
)  # fmt: skip
def test_another_run_is_refused(other, tmp_path, monkeypatch):
    kept = tmp_path / "fit"
    with monkeypatch.context() as patched:
        stopped_at(patched, 2)
        with pytest.raises(Stop):
            lasso().fit(X, Y, checkpoint=kept)
    before = kept.read_bytes()
    with pytest.raises(CheckpointError, match="belongs to another run"):
        other.fit(X, Y, checkpoint=kept)
    with pytest.raises(CheckpointError, match="n_rows differ"):
        lasso().fit(X[1:], Y[1:], checkpoint=kept)
    assert kept.read_bytes() == before


def begun(path, releases=3):
    kept = Checkpoint(path, "1", {})
    for i in range(releases):
        kept.keep(Pure(1.0), np.array([float(i)]))
    kept.close()
    return path.read_bytes()


def test_a_damaged_file_is_refused_wherever_the_damage_is(tmp_path):
    path = tmp_path / "fit"
    whole = begun(path)
    refused = 0
    for at in range(0, len(whole) - 1, 7):
        broken = bytearray(whole)
        broken[at] ^= 1
        path.write_bytes(bytes(broken))
        with pytest.raises(CheckpointError, match=r"damaged|another version|another run"):
            Checkpoint(path, "1", {})
        refused += 1
    assert refused > 100


@pytest.mark.not_quick
def test_a_file_that_ends_early_goes_on_from_its_last_whole_line(tmp_path):
    path = tmp_path / "fit"
    whole = begun(path)
    ends = [i + 1 for i, byte in enumerate(whole) if byte == 10]
    for size in range(1, len(whole)):
        path.write_bytes(whole[:size])
        lines = sum(end <= size for end in ends)
        if lines == 0:
            with pytest.raises(CheckpointError, match="damaged"):
                Checkpoint(path, "1", {})
            continue
        kept = Checkpoint(path, "1", {})
        for i in range(lines - 1):
            assert kept.known(Pure(1.0)) == (True, np.array([float(i)]))
        assert kept.known(Pure(1.0)) == (False, None)
        kept.keep(Pure(1.0), np.array([float(lines - 1)]))
        kept.close()
        assert path.read_bytes() == whole[: ends[lines]] if lines < len(ends) else True


def test_lines_cannot_be_swapped_dropped_or_taken_from_another_run(tmp_path):
    path, other = tmp_path / "fit", tmp_path / "other"
    lines, others = begun(path).splitlines(True), begun(other).splitlines(True)
    for forged in (
        [lines[0], lines[2], lines[1], lines[3]],
        [lines[0], lines[2], lines[3]],
        [lines[0], others[1], lines[2], lines[3]],
        [*lines, lines[3]],
    ):
        path.write_bytes(b"".join(forged))
        with pytest.raises(CheckpointError, match="damaged"):
            Checkpoint(path, "1", {})


def test_without_its_key_a_run_cannot_go_on(tmp_path):
    path = tmp_path / "fit"
    begun(path)
    key = path.with_name("fit.key")
    assert key.stat().st_mode & 0o777 == 0o600
    assert path.stat().st_mode & 0o777 == 0o600
    secret = key.read_bytes()
    assert len(secret) == 32
    assert secret.hex().encode() not in path.read_bytes()
    key.unlink()
    with pytest.raises(CheckpointError, match="is missing"):
        Checkpoint(path, "1", {})
    key.write_bytes(os.urandom(32))
    with pytest.raises(CheckpointError, match="damaged"):
        Checkpoint(path, "1", {})


def test_a_file_in_use_is_refused(tmp_path):
    kept = Checkpoint(tmp_path / "fit", "1", {})
    with pytest.raises(CheckpointError, match="used by another run"):
        Checkpoint(tmp_path / "fit", "1", {})
    kept.close()
    Checkpoint(tmp_path / "fit", "1", {}).close()
    with pytest.raises(CheckpointError, match="cannot be opened"):
        Checkpoint(tmp_path / "missing" / "fit", "1", {})


class Drawn(Mechanism):
    event = Gaussian(1.0)

    def release(self, query, engine, noise):
        return noise.words(2).astype(np.int64)

    def describe(self, times):
        return ""


class Reread(Engine):
    """Rows that are read again during a sum, as when a worker is lost.

    `numbers` are what the digests and queries are summed over, one after the other; `again` are
    the sums during which rows are read again.
    """

    def __init__(self, numbers=(0,), again=()):
        self._numbers, self._again = numbers, again
        self.asked, self._readings = 0, 1

    @property
    def readings(self):
        return self._readings

    def total(self, query):
        number = self._numbers[min(self.asked, len(self._numbers) - 1)]
        self._readings += self.asked in self._again
        self.asked += 1
        return np.full(4, number)


class Summed(Drawn):
    """A sum and its noise, as they are."""

    def release(self, query, engine, noise):
        return np.append(engine.total(query), noise.words(1).astype(np.int64))


def opened(kept, engine, releases):
    return Curator.open(
        compose((Gaussian(1.0), releases)), read=lambda: engine, noise=Noise(),
        adjacency="replace-one", checkpoint=kept,
    )  # fmt: skip


def two_releases(path, engine):
    kept = Checkpoint(path, "1", {})
    try:
        curator = opened(kept, engine, 2)
        return [curator.release(None, Summed()) for _ in range(2)]
    finally:
        kept.close()


#: Which sum is asked for what: code, release, release.
SAME_ROWS = [(0,), (1,), (2,), (0, 1), (1, 2), (1, 3), (0, 1, 2, 3)]


@pytest.mark.parametrize("again", SAME_ROWS)
def test_rows_that_are_read_again_and_are_the_same_release_the_same(again, tmp_path):
    kept = Checkpoint(tmp_path / "fit", "1", {})
    kept.close()
    for name in ("one", "two"):
        shutil.copy(tmp_path / "fit", tmp_path / name)
        shutil.copy(tmp_path / "fit.key", tmp_path / f"{name}.key")
    engine = Reread((5,), again)
    found = two_releases(tmp_path / "one", engine)
    np.testing.assert_array_equal(found, two_releases(tmp_path / "two", Reread((5,))))
    assert engine.asked > 3


#: Sums over some rows, 5, and over others, 6; when rows were read again; over which rows the run
#: is then, or None if it is refused.
OTHER_ROWS = {
    "during the first code": ((5, 6), (0,), 6),
    "during a release": ((5, 6, 6), (1,), None),
    "between releases": ((5, 5, 6, 6), (2,), None),
    "and back": ((5, 6, 5, 5), (1, 2), 5),
}


@pytest.mark.parametrize("when", OTHER_ROWS)
def test_noise_never_meets_other_rows_that_were_read_again(when, tmp_path):
    """Every release is over the rows whose code decides its noise, or there is none."""
    numbers, again, of = OTHER_ROWS[when]
    if of is None:
        with pytest.raises(CheckpointError, match="other rows"):
            two_releases(tmp_path / "fit", Reread(numbers, again))
    else:
        found = two_releases(tmp_path / "fit", Reread(numbers, again))
        assert {each[0] for each in found} == {of}


def test_rows_that_are_refused_are_refused_again(tmp_path):
    kept = Checkpoint(tmp_path / "fit", "1", {})
    curator = opened(kept, Reread((5, 6), (1,)), 3)
    for _ in range(3):
        with pytest.raises(CheckpointError, match="other rows"):
            curator.release(None, Summed())
    kept.close()


def test_the_noise_of_a_release_follows_from_all_releases_before(tmp_path):
    kept = Checkpoint(tmp_path / "fit", "1", {})
    first, again = (kept.noise().words(8) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    kept.keep(Pure(1.0), 1)
    assert not np.array_equal(first, kept.noise().words(8))
    assert not kept.noise().seeded
    late = kept.noise().words(8)
    assert not np.array_equal(late, kept.noise("another query").words(8))
    kept._rows = "other rows"
    assert not np.array_equal(late, kept.noise().words(8))
    other = Checkpoint(tmp_path / "other", "1", {})
    assert not np.array_equal(first, other.noise().words(8))
    kept.close()
    other.close()


def test_a_release_that_cannot_be_written_is_not_seen(tmp_path, monkeypatch):
    kept = Checkpoint(tmp_path / "fit", "1", {})
    curator = opened(kept, Reread(), 1)

    def full(fd):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(CheckpointError, match="the disk is full"):
            curator.release(None, Drawn())
    kept.close()
    assert len((tmp_path / "fit").read_bytes().splitlines()) == 1


@pytest.mark.parametrize(
    "value",
    [
        3, np.int64(5), np.array([1.5, -0.0, np.inf]), np.arange(3, dtype=np.int64),
        Vector.of(np.array([0.0, 0.1, 0.0, -2.0])).with_offset(0.3), Vector.zero(4),
    ],
)  # fmt: skip
def test_releases_keep_their_bits(value):
    found = release_from_text(json.loads(json.dumps(release_to_text(value))))
    if isinstance(value, Vector):
        assert (found.size, found.offset) == (value.size, value.offset)
        np.testing.assert_array_equal(found.support, value.support)
        np.testing.assert_array_equal(found.values, value.values)
    else:
        np.testing.assert_array_equal(found, value)
        assert np.asarray(found).dtype == np.asarray(value).dtype
    with pytest.raises(TypeError, match="cannot be written down"):
        release_to_text({"rows": 1})


def test_a_checkpoint_holds_nothing_of_the_rows(tmp_path):
    rows = sparse.csr_array(np.full((50, 3), 0.123456789))
    kept = tmp_path / "fit"
    PrivateLasso(1.0, 1e-5, bounds=BOUNDS, solver="frank-wolfe", steps=3).fit(
        rows, np.full(50, 0.987654321), checkpoint=kept
    )
    for line in kept.read_bytes().splitlines():
        record = json.loads(line.partition(b" ")[2])
        assert set(record) in (
            {"riata checkpoint", "id", "seed", "request", "facts"},
            {"event", "value", "rows"},
            {"event", "value"},
            {"over"},
        )
    for value in (0.123456789, 0.987654321):
        assert str(value).encode() not in kept.read_bytes()
        assert np.float64(value).tobytes() not in kept.read_bytes()


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_a_copy_repeats_the_same_releases_with_engines_that_remember_too(
    engine, tmp_path, monkeypatch
):
    """They know scores from earlier steps: with a checkpoint each release begins anew."""
    rng = np.random.default_rng(1)
    x = sparse.random_array((3_000, 2_000), density=0.02, rng=rng, format="csc")
    y = np.clip(x @ rng.standard_normal(2_000), -1, 1)
    model = lasso(engine=engine, fit_intercept=False, steps=40)
    monkeypatch.setattr(private_frank_wolfe, "_ROWS_AT_ONCE", 4 * 3_000)
    kept, copy, old = tmp_path / "fit", tmp_path / "copy", tmp_path / "old"
    with monkeypatch.context() as patched:
        stopped_at(patched, 5)
        with pytest.raises(Stop):
            model.fit(x, y, checkpoint=kept)
    for end in ("", ".key"):
        for each in (copy, old):
            text = kept.with_name("fit" + end).read_bytes()
            if each == old and not end:
                text = b"".join(text.splitlines(True)[:3])  # rolled back
            each.with_name(each.name + end).write_bytes(text)
    models = [model.fit(x, y, checkpoint=path) for path in (kept, copy, old)]
    assert kept.read_bytes() == copy.read_bytes() == old.read_bytes()
    assert len(kept.read_bytes().splitlines()) > 8
    assert all(np.array_equal(models[0].coef_, other.coef_) for other in models)
