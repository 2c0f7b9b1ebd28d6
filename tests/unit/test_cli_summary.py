"""What `riata fit` says at its end, and `riata summary`."""

import json

import numpy as np
import pytest

import riata
from riata import Bounds, PrivateLasso, PrivateLogisticRegression
from riata.estimators.summary import summarize

SCHEMA = """
features = [
    {name = "age", kind = "number", bounds = [0, 100], knots = 0},
    {name = "smoker", kind = "yes-no"},
]
target = {name = "cost", bounds = [0, 1000]}
"""
LABELS = SCHEMA.replace("bounds = [0, 1000]", 'classes = ["ill", "well"]')
FIT = ["fit", "--schema", "s.toml", "--data", "d.csv", "--out", "m", "--delta", "1e-7", "--yes"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = [
        f"{age},{'yes' if smokes else 'no'},{6 * age + 300 * smokes}"
        for age, smokes in zip(rng.integers(0, 100, 4000), rng.integers(0, 2, 4000), strict=True)
    ]
    (tmp_path / "s.toml").write_text(SCHEMA)
    (tmp_path / "d.csv").write_text("\n".join(["age,smoker,cost", *lines]) + "\n")
    return tmp_path


def test_a_fit_ends_with_what_was_learned(here, riata_command):
    done = riata_command(*FIT, "--epsilon", "2")
    assert done.code == 0, done.err
    assert "fit        0." in done.out or "fit        1." in done.out
    (age,) = (line.split() for line in done.out.splitlines() if line.startswith("age "))
    assert float(age[1]) == pytest.approx(6, abs=0.5)  # of cost for a year, and not for 50
    assert "95% interval" in done.out
    assert "learned" not in done.out
    assert done.out.index("age ") < done.out.rindex("The model is (2, 1e-07)-diff")
    assert done.out.rstrip().endswith("report.html")


def test_a_fit_that_learned_nothing_says_so_and_what_would_help(here, riata_command):
    done = riata_command(*FIT, "--epsilon", "0.002", "--seed", "1")
    assert done.code == 0, done.err
    assert "learned" in done.out
    assert "What would help:" in done.out
    said = " ".join(done.out.split())
    for fact in ("now 4,000", "now 0.002", "now 2)", "riata plan", "never from the rows", "'cost'"):
        assert fact in said


def test_misspelt_classes_do_not_end_as_a_silent_constant(here, riata_command):
    """Every label of the file is in none of the classes of the schema."""
    (here / "s.toml").write_text(LABELS)
    text = (here / "d.csv").read_text().replace("cost", "COST", 1).splitlines()
    lines = [line.rsplit(",", 1)[0] + ",Ill" for line in text]
    (here / "d.csv").write_text("\n".join(["age,smoker,cost", *lines[1:]]) + "\n")
    done = riata_command(*FIT, "--epsilon", "2", "--seed", "1")
    assert done.code == 0, done.err
    assert "is none of the classes: check the spelling" in " ".join(done.err.split())
    assert "learned" in done.out
    assert "spells the classes as the schema does ('ill', 'well')" in " ".join(done.out.split())


def test_programs_get_the_same(here, riata_command):
    facts = json.loads(riata_command(*FIT, "--epsilon", "2", "--json").out)["summary"]
    assert {term["term"] for term in facts["terms"]} == {"(intercept)", "age", "smoker"}
    assert facts["glance"]["nobs"] == 4000
    assert facts["advice"] == []
    again = json.loads(riata_command("summary", "m/model.riata", "--json").out)
    assert again == facts


def test_a_summary_of_a_file(here, riata_command):
    riata_command(*FIT, "--epsilon", "2")
    done = riata_command("summary", "m/model.riata", "--level", "0.9")
    assert "90% interval" in done.out
    assert str(riata.load("m/model.riata").summary(0.9)) in done.out
    assert riata_command("summary", "m/model.riata", "--level", "90").code == 2


def fitted(coef, error, gain, gain_error):
    model = PrivateLasso(1.0, bounds=Bounds(x=1.0, y=1.0), solver="frank-wolfe", steps=1)
    model.fit(np.zeros((30, len(coef))), np.zeros(30))
    model.coef_, model.coef_error_ = np.array(coef), np.array(error)
    model.training_fit_, model.training_fit_error_ = gain, gain_error
    return model


@pytest.mark.parametrize(
    ("error", "gain", "unknown"),
    [(np.nan, np.nan, True), (0.1, np.nan, False), (np.nan, 0.5, False)],
)
def test_what_says_nothing_about_itself_is_to_be_scored(error, gain, unknown):
    notes = " ".join(summarize(fitted([1.0, 0.0], [error, np.nan], gain, 0.1)).notes)
    assert ("Nothing that was released says how good this model is" in notes) is unknown


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (fitted([0.0, 0.0], [np.nan, np.nan], np.nan, np.nan), "every coefficient is 0"),
        (fitted([1.0, 0.0], [np.nan, np.nan], 0.1, 0.2), "cannot be told from 0"),
        (fitted([1.0, 0.0], [0.3, np.nan], 1.2, 0.3), "a constant is right about nearly every row"),
        (fitted([1.0, 0.0], [0.1, np.nan], 1.2, 0.3), "The coefficient of x[0] can be told from 0"),
        (fitted([1.0, 0.0], [0.1, np.nan], 0.1, 0.2), "The coefficient of x[0] can be told from 0"),
        (fitted([1.0] * 5, [0.1] * 5, 0.1, 0.2), "x[0], x[1], x[2] and 2 more can be told"),
        (fitted([1.0, 0.0], [0.1, np.nan], 0.9, 0.1), ""),
        (fitted([1.0, 0.0], [0.7, np.nan], np.nan, np.nan), "no coefficient can be told"),
        (fitted([1.0, 0.0], [0.1, np.nan], np.nan, np.nan), ""),
        (fitted([1.0, 0.0], [np.nan, np.nan], np.nan, np.nan), ""),  # nobody knows
        (fitted([1.0, 0.5], [0.7, np.nan], np.nan, np.nan), ""),
        (fitted([1.0, 0.0], [0.7, np.nan], 0.8, 0.1), "although the model predicts better"),
    ],
)
def test_the_words_follow_from_what_was_released(model, said):
    lines = summarize(model).advice
    assert bool(lines) is bool(said)
    if said:
        assert said in lines[0]
        assert len(lines) == 3


def test_one_class_that_was_learned_is_enough():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (300, 3))
    model = PrivateLogisticRegression(1.0, bounds=Bounds(x=1.0), classes=["a", "b", "c"])
    model.fit(x, rng.choice(["a", "b", "c"], 300))
    model.coef_ = np.zeros((3, 3))
    assert summarize(model).advice
    model.coef_[1, 1] = 1.0
    model.training_fit_ = np.array([0.0, 0.9, 0.0])
    model.training_fit_error_ = np.full(3, 0.1)
    model.coef_error_ = np.full((3, 3), np.nan)
    assert summarize(model).advice == ()
