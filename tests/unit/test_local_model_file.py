"""Models that were learned from reports come back as they were, with their task and Statement."""

import io
import json
import zipfile
from functools import cache

import numpy as np
import pandas as pd
import pytest

import riata
from riata import (
    Bounds,
    LocalKernelRidge,
    LocalLasso,
    LocalLogisticRegression,
    LocalPoissonRegression,
    LocalSparseMean,
)
from riata.errors import InvalidArgument, ModelFileError
from riata.local import Aggregator, Task
from riata.local.randomize import randomize
from riata.mechanisms.noise import Noise

SURVEY = """
title = "Sleep <b>"
kind = "linear"
epsilon = 4.0
[[features]]
name = "hours"
kind = "number"
bounds = [0, 24]
[[features]]
name = "town"
kind = "choice"
choices = ["a", "b"]
[target]
name = "mood"
kind = "number"
bounds = [0, 10]
"""
LENGTH = Bounds(x=1.0, y=1.0, norm="l2")
MODELS = {
    "mean": LocalSparseMean(4.0, bounds=LENGTH, random_state=0),
    "plain mean": LocalSparseMean(4.0, bounds=LENGTH, threshold="none", random_state=0),
    "lasso": LocalLasso(4.0, bounds=LENGTH, random_state=0),
    "each column": LocalLasso(4.0, bounds=Bounds(np.linspace(0.5, 1.5, 5), 2.0), random_state=0),
    "ridge": LocalLasso(4.0, bounds=LENGTH, penalty="l2", fit_intercept=False, random_state=0),
    "kernel": LocalKernelRidge(4.0, bounds=LENGTH, pairs=4, random_state=0),
    "logistic": LocalLogisticRegression(4.0, bounds=LENGTH, random_state=0),
    "poisson": LocalPoissonRegression(4.0, bounds=LENGTH, random_state=0),
}


def rows(n=20_000):
    rng = np.random.default_rng(5)
    x = rng.uniform(-0.4, 0.4, (n, 5))
    return x, np.clip(2 * x[:, 0], -1, 1)


def fitted(name):
    x, y = rows()
    model = MODELS[name]
    return model.fit(x, np.where(y > 0, "yes", "no") if name == "logistic" else y)


@cache
def learned():
    task = Task.read(SURVEY, toml=True)
    people = [{"hours": 24.0 * (k % 2), "town": "ab"[k % 2]} for k in range(2000)]
    encoded = np.array([task.encoding.encode(row) for row in people] * 10)
    moods = np.array([task.target.encode(10.0 * (k % 2))[0] for k in range(len(encoded))])
    reports = randomize(task, encoded, moods, Noise(3))
    return Aggregator(task, expected=len(encoded)).add(reports).solve(), people


@pytest.mark.parametrize("name", MODELS)
def test_every_local_estimator_comes_back(name, tmp_path):
    model = fitted(name)
    riata.save(model, tmp_path / "model.riata")
    again = riata.load(tmp_path / "model.riata")
    assert type(again) is type(model)
    assert vars(again).keys() == vars(model).keys()
    assert again.privacy_ == model.privacy_
    assert again.privacy_.seeded
    assert again.task_.id == model.task_.id
    assert again.model_.theta.tobytes() == model.model_.theta.tobytes()
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, method):
            before, after = getattr(model, method)(rows()[0]), getattr(again, method)(rows()[0])
            assert before.tobytes() == after.tobytes()
    for values in ("coef_", "coef_error_", "mean_", "mean_error_"):
        if hasattr(model, values):
            assert getattr(model, values).tobytes() == getattr(again, values).tobytes()
    riata.save(again, tmp_path / "again.riata")
    files = [(tmp_path / each).read_bytes() for each in ("model.riata", "again.riata")]
    assert files[0] == files[1]


def test_column_names_and_classes_come_back(tmp_path):
    x, y = rows()
    names = [f"c{j}" for j in range(5)]
    model = LocalLogisticRegression(4.0, bounds=LENGTH, random_state=1)
    model.fit(pd.DataFrame(x, columns=names), y > 0)
    riata.save(model, tmp_path / "model.riata")
    again = riata.load(tmp_path / "model.riata")
    assert again.feature_names_in_.tolist() == names
    assert again.classes_.tolist() == [False, True]
    assert again.classes_.dtype == model.classes_.dtype


def test_what_a_survey_learned_comes_back(tmp_path):
    model, people = learned()
    riata.save(model, tmp_path / "survey.riata")
    again = riata.load(tmp_path / "survey.riata")
    assert again.privacy == model.privacy
    assert again.privacy.private
    assert str(again) == str(model)
    assert again.predict(people).tobytes() == model.predict(people).tobytes()


def test_a_simulation_that_was_not_run_is_refused(tmp_path):
    with pytest.raises(InvalidArgument, match="Call fit first"):
        riata.save(LocalLasso(1.0, bounds=LENGTH), tmp_path / "model.riata")


def edited(path, change):
    """The file after `change` has edited its JSON."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["model.json"])
    change(manifest)
    members["model.json"] = json.dumps(manifest).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    path.write_bytes(out.getvalue())


CHANGES = {
    "another task": lambda m: m["fitted"].update(task='{"kind":"mean"}'),
    "no task": lambda m: m["fitted"].pop("task"),
    "a task with a space": lambda m: m["fitted"].update(task=m["fitted"]["task"] + " "),
    "a task that is a number": lambda m: m["fitted"].update(task=7),
    "more": lambda m: m["fitted"].update(code="import os"),
    "a parameter": lambda m: m["parameters"].update(epsilon=1.0),
    "a smaller epsilon": lambda m: m["statement"].update(epsilon=0.1),
    "reports": lambda m: m["fitted"].update(reports=-1),
    "signal": lambda m: m["fitted"].update(signal="yes"),
    "offset": lambda m: m["fitted"].update(offset={"float": "nan"}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_an_edited_file_is_refused(name, tmp_path):
    path = tmp_path / "survey.riata"
    riata.save(learned()[0], path)
    edited(path, CHANGES[name])
    with pytest.raises(ModelFileError):
        riata.load(path)


def test_a_task_that_does_not_fit_the_estimator_is_refused(tmp_path):
    path = tmp_path / "model.riata"
    riata.save(fitted("lasso"), path)
    edited(path, lambda m: m["fitted"].update(n_features_in_=4))
    with pytest.raises(ModelFileError, match="not one of its parameters and columns"):
        riata.load(path)
