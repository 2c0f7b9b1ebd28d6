"""`riata tune`: the total first, then the charge, then the rows; how many tries stays secret."""

import json

import numpy as np
import pytest

import riata
from riata import Budget, Ledger

SCHEMA = """
[[features]]
name = "age"
kind = "number"
bounds = [0, 100]

[target]
name = "cost"
bounds = [0, 1000]
"""
STUDY = """
schema = "claims.toml"
data = "claims.csv"
out = "model"
estimator = "lasso"

[parameters]
solver = "frank-wolfe"
steps = 3

[grid]
radius = [0.1, 2000.0]

[budget]
epsilon = 4.0
delta = 1e-7

[ledger]
path = "claims.db"
"""


@pytest.fixture
def study(tmp_path):
    rng = np.random.default_rng(0)
    ages = rng.integers(0, 100, 3_000)
    lines = "".join(f"{age},{9 * age}\n" for age in ages)
    (tmp_path / "claims.csv").write_text("age,cost\n" + lines)
    (tmp_path / "claims.toml").write_text(SCHEMA)
    Ledger.create(tmp_path / "claims.db", dataset="claims", ceiling=Budget(5.0, 1e-6))
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


def test_a_search_is_shown_charged_and_written(study, riata_command):
    done = riata_command("tune", study, "--yes", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["parameters"]["radius"] in (0.1, 2000.0)  # the noise is secret: either may win
    assert found["statement"]["epsilon"] == pytest.approx(4.0, rel=1e-2)
    assert found["ledger"]["charges"] == 1
    assert "random number of runs" in done.err
    folder = study.parent / "model"
    model = riata.load(folder / "model.riata")
    assert model.privacy_.epsilon <= 4.0
    predicted = model.predict(riata.read(study.parent / "claims.csv", model.schema_))
    assert predicted.shape == (3_000,)
    assert np.all(np.isfinite(predicted))
    assert (folder / "statement.txt").exists()


def test_nothing_is_charged_or_read_without_consent(study, riata_command):
    done = riata_command("tune", study, said="n\n")
    assert (done.code, done.out) == (0, "")
    assert "Nothing was charged" in done.err
    assert Ledger.open(study.parent / "claims.db").charges == []
    assert riata_command("tune", study).code == 2  # no terminal, and no --yes


def test_what_cannot_be_searched_is_refused_before_anything_is_charged(study, riata_command):
    text = study.read_text()
    for old, new, what in (
        ("radius = [0.1, 2000.0]", "", "no grid"),
        ("radius = [0.1, 2000.0]", "epsilon = [1.0]", "cannot be searched"),
        ("radius = [0.1, 2000.0]", "radios = [1.0]", "no parameter"),
        ('out = "model"', 'out = "model"\ncheckpoint = "run"', "no checkpoint"),
        ("epsilon = 4.0", "epsilon = 40.0", "more than the ceiling"),
    ):
        study.write_text(text.replace(old, new))
        done = riata_command("tune", study, "--yes")
        assert done.code in (2, 3)
        assert what in done.err
    study.write_text(text)
    refused = riata_command("fit", study, "--yes")
    assert refused.code == 2
    assert "riata tune" in refused.err
    assert Ledger.open(study.parent / "claims.db").charges == []


def test_values_can_be_given_as_options(study, riata_command):
    study.write_text(STUDY.replace("[grid]\nradius = [0.1, 2000.0]\n", ""))
    done = riata_command(
        "tune", study, "--grid", "radius=[2000.0]", "--grid", "steps=[2, 4]", "--expected", "1.5",
        "--yes",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "Found radius=2000.0" in done.out
    assert riata_command("tune", study, "--grid", "radius").code == 2
