"""A schema in pipelines: nothing is learned from rows, and riata's own tools take the pipeline."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import SkipTestWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator

import riata
from riata import (
    Bounds,
    PrivateLasso,
    PrivateLogisticRegression,
    PrivateSearch,
    Schema,
    SchemaEncoder,
    read,
    report,
)
from riata.errors import InvalidArgument, ModelFileError, PrivacyWarning

TABLE = {
    "features": [
        {"name": "age", "kind": "number", "bounds": [0, 100], "knots": 5},
        {"name": "ward", "kind": "choice", "choices": ["north", "south"]},
        {"name": "note", "kind": "text", "buckets": 16},
    ],
    "target": {"name": "cost", "bounds": [0, 10]},
}
SCHEMA = Schema.from_table(TABLE)


def frame(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, n)
    ward = rng.choice(["north", "south", "moon"], n)
    return pd.DataFrame({
        "age": age, "ward": ward, "note": rng.choice(["a fall", "pain", ""], n),
        "cost": np.clip(age / 20 + 3 * (ward == "south") + rng.normal(0, 0.3, n), 0, 10),
    })  # fmt: skip


ROWS = frame()
X, Y = ROWS.drop(columns="cost"), ROWS["cost"]


@pytest.mark.parametrize(
    "name",
    [
        "estimator_cloneable", "estimator_repr", "get_params_invariance", "mixin_order",
        "no_attributes_set_in_init", "set_params", "valid_tag_types",
    ],
)  # fmt: skip
def test_scikit_learn_takes_it(name):
    # The checks that need no rows: those of scikit-learn do not have the schema's columns.
    getattr(estimator_checks, f"check_{name}")("SchemaEncoder", SchemaEncoder(SCHEMA))


def test_scikit_learn_knows_what_it_cannot_check():
    with pytest.warns(SkipTestWarning, match="requires input"):
        check_estimator(SchemaEncoder(SCHEMA))


def test_rows_are_those_of_a_source():
    expected = read(X, SCHEMA, target=False).load()[0].toarray()
    encoder = SchemaEncoder(SCHEMA)
    for rows in (X, pl.from_pandas(X), X.to_numpy(), X.to_numpy().tolist(), read(ROWS, SCHEMA)):
        np.testing.assert_array_equal(encoder.transform(rows).toarray(), expected)
    np.testing.assert_array_equal(encoder.fit_transform(X, Y).toarray(), expected)
    assert encoder.get_feature_names_out().tolist() == SCHEMA.feature_names
    for again in (clone(encoder), pickle.loads(pickle.dumps(encoder))):
        np.testing.assert_array_equal(again.transform(X).toarray(), expected)


def test_a_fit_reads_no_row():
    encoder = SchemaEncoder(TABLE)
    assert encoder.fit(object()) is encoder
    assert vars(encoder) == {"schema": TABLE}


def test_a_schema_may_be_a_file(tmp_path):
    SCHEMA.save(tmp_path / "schema.toml")
    found = SchemaEncoder(tmp_path / "schema.toml").transform(X)
    np.testing.assert_array_equal(found.toarray(), SchemaEncoder(TABLE).transform(X).toarray())


def test_a_block_of_columns():
    encoder = SchemaEncoder({"features": {"count": 3, "bound": 2.0}})
    rows = np.array([[1.0, 4.0, np.nan]])
    for given in (rows, sparse.csr_array(rows)):
        assert encoder.transform(given).toarray().tolist() == [[0.5, 1.0, 0.0]]


#: What a cell of a list may hold.
CELLS = [
    1, 3.5, True, None, "moon", "", b"x", 2**53 + 1, 2**63, 2**70, -(10**400), 1j, [3], [3, 4], (),
    {}, np.zeros(2), np.float32(0.1), np.nan, object(), "\ud800",
]  # fmt: skip
LISTED = SchemaEncoder({
    "features": [
        {"name": "ward", "kind": "choice", "choices": ["1", "2", "true"]},
        {"name": "id", "kind": "hash", "buckets": 16},
        {"name": "n", "kind": "number", "bounds": [0, 10], "knots": 3},
    ]
})  # fmt: skip
BLOCK = SchemaEncoder({"features": {"count": 3, "bound": 2.0}})


@pytest.mark.parametrize("encoder", [LISTED, BLOCK], ids=["named", "block"])
@pytest.mark.parametrize("place", range(3))
def test_a_cell_of_a_list_changes_no_other_row(encoder, place):
    for first in ([1.0, 2**53 + 1, 0.5], [1, 7, 1], [True, 7, "2"]):
        (alone,) = encoder.transform([first]).toarray()
        for cell in CELLS:
            other = [1, 2, 3]
            other[place] = cell
            (last,) = encoder.transform([tuple(other)]).toarray()
            found = encoder.transform([first, other]).toarray()
            assert found.tolist() == [alone.tolist(), last.tolist()]
            held = np.empty((2, 3), dtype=object)
            held[0], held[1] = first, (0, 0, 0)
            for k, each in enumerate(other):
                held[1, k] = each
            np.testing.assert_array_equal(encoder.transform(held).toarray(), found)


def test_a_number_in_a_list_is_that_of_an_array():
    rows = [[1.0, 5.0, 2.5], [2.0, 6.0, 40.0]]
    for encoder in (LISTED, BLOCK):
        wanted = encoder.transform(np.array(rows)).toarray()
        np.testing.assert_array_equal(encoder.transform(rows).toarray(), wanted)
        np.testing.assert_array_equal(
            encoder.transform(list(map(np.array, rows))).toarray(), wanted
        )


@pytest.mark.parametrize("encoder", [LISTED, BLOCK], ids=["named", "block"])
def test_lists_of_another_shape_are_refused_by_their_lengths(encoder):
    for ragged in ([[1, 2, 3], [1, 2]], [["canary", [], None], []]):
        with pytest.raises(InvalidArgument, match="different lengths") as error:
            encoder.transform(ragged)
        assert "canary" not in str(error.value)
    for flat in ([], [1, 2, 3], ["abc", "def"], [[1, 2, 3], None]):
        with pytest.raises(InvalidArgument, match="2D"):
            encoder.transform(flat)
    with pytest.raises(InvalidArgument, match="columns"):
        encoder.transform([[1, 2]])


def test_what_is_masked_is_missing():
    rows = np.array([[1.0, 5.0, 2.5], [2.0, 6.0, 7.0]])
    hidden = np.ma.array(rows, mask=[[True, False, True], [False] * 3])
    for encoder in (LISTED, BLOCK):
        wanted = encoder.transform([[None, 5.0, None], [2.0, 6.0, 7.0]]).toarray()
        for given in (hidden, hidden.astype(object)):
            np.testing.assert_array_equal(encoder.transform(given).toarray(), wanted)


@pytest.mark.parametrize("rows", [np.zeros(3), np.zeros((2, 4)), [["a"]]])
def test_rows_of_another_shape_are_refused(rows):
    with pytest.raises(InvalidArgument, match="columns"):
        SchemaEncoder(SCHEMA).transform(rows)


def test_people_are_not_for_pipelines():
    people = TABLE | {"person": "id", "rows_of_a_person": 1}
    with pytest.raises(InvalidArgument, match="Fit a source"):
        SchemaEncoder(people).fit(X)


def test_bounds_are_those_of_the_targets_as_they_are():
    assert SchemaEncoder(SCHEMA).bounds.y == 10
    classes = TABLE | {"target": {"name": "cost", "classes": [0, 1]}}
    assert SchemaEncoder(classes).bounds.y is None


@pytest.fixture(scope="module")
def pipeline():
    encoder = SchemaEncoder(SCHEMA)
    model = PrivateLasso(2.0, 1e-6, bounds=encoder.bounds, random_state=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return make_pipeline(encoder, model).fit(X, Y)


def test_a_pipeline_is_saved_and_loaded(pipeline, tmp_path):
    riata.save(pipeline, tmp_path / "model.riata")
    again = riata.load(tmp_path / "model.riata")
    assert [name for name, _ in again.steps] == [name for name, _ in pipeline.steps]
    np.testing.assert_array_equal(again.predict(X), pipeline.predict(X))
    assert again[-1].privacy_ == pipeline[-1].privacy_
    assert again[0].schema == SCHEMA


def test_an_encoder_that_does_not_fit_its_model_is_refused(pipeline, tmp_path):
    wrong = make_pipeline(SchemaEncoder({"features": TABLE["features"][:1]}), pipeline[-1])
    with pytest.raises(InvalidArgument, match="could not be loaded"):
        riata.save(wrong, tmp_path / "model.riata")
    with pytest.raises(ModelFileError):
        riata.load(tmp_path / "model.riata")


def test_a_pipeline_has_a_report_with_names(pipeline):
    page = report.html(pipeline)
    assert "ward=south" in page
    assert pipeline[-1].privacy_.sentence in page


def test_a_pipeline_is_exported(pipeline, tmp_path):
    onnx = pytest.importorskip("onnx")
    from onnx.reference import ReferenceEvaluator

    riata.export_onnx(pipeline, tmp_path / "model.onnx")
    session = ReferenceEvaluator(onnx.load(tmp_path / "model.onnx"))
    encoded = pipeline[0].transform(X).toarray()
    (found,) = session.run(None, {"X": encoded})
    np.testing.assert_allclose(found, pipeline.predict(X), atol=1e-9)
    made = onnx.load(tmp_path / "model.onnx")
    said = {each.key: each.value for each in made.metadata_props}
    assert Schema.read(said["riata.schema"]) == SCHEMA


def test_predictions_of_a_saved_pipeline_for_a_file(pipeline, tmp_path):
    from typer.testing import CliRunner

    from riata.cli.main import app

    riata.save(pipeline, tmp_path / "model.riata")
    X.head(50).to_csv(tmp_path / "rows.csv", index=False)
    args = ["predict", tmp_path / "model.riata", "--data", tmp_path / "rows.csv"]
    done = CliRunner().invoke(app, [*map(str, args), "--out", str(tmp_path / "found.csv")])
    assert done.exit_code == 0, done.output
    found = pd.read_csv(tmp_path / "found.csv")["prediction"]
    np.testing.assert_allclose(found, pipeline.predict(X.head(50)))


# Steps that learn from rows.

NUMBERS = np.random.default_rng(0).uniform(-1, 1, (200, 3))
BOUNDS = Bounds(1.0, 1.0)


def lasso(**how):
    return PrivateLasso(1.0, 1e-6, bounds=BOUNDS, **how)


def test_a_scaler_is_warned_about():
    with pytest.warns(PrivacyWarning, match="fits StandardScaler to the private rows"):
        make_pipeline(StandardScaler(), lasso()).fit(NUMBERS, NUMBERS[:, 0])


def test_a_vectoriser_is_warned_about():
    model = PrivateLogisticRegression(1.0, 1e-6, bounds=BOUNDS, classes=[0, 1])
    with pytest.warns(PrivacyWarning, match="TfidfVectorizer"):
        make_pipeline(TfidfVectorizer(), model).fit(["a fall", "pain"] * 50, [0, 1] * 50)


def test_a_scaler_before_a_search_is_warned_about():
    tried = PrivateLasso(None, bounds=BOUNDS, solver="frank-wolfe", steps=2)
    search = PrivateSearch(tried, {"radius": [1.0]}, 1.0, 0.0, expected=1)
    with pytest.warns(PrivacyWarning, match="StandardScaler"):
        make_pipeline(StandardScaler(), search).fit(NUMBERS, NUMBERS[:, 0])


def test_steps_that_learn_nothing_are_not_warned_about():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_pipeline(Normalizer(), "passthrough", lasso()).fit(NUMBERS, NUMBERS[:, 0])
        lasso().fit(NUMBERS, NUMBERS[:, 0])


def test_a_pipeline_without_an_encoder_is_not_saved(tmp_path):
    with pytest.raises(InvalidArgument, match="SchemaEncoder"):
        riata.save(make_pipeline(lasso()), tmp_path / "m")


def test_a_pipeline_with_a_scaler_is_neither_saved_nor_reported(tmp_path):
    model = make_pipeline(StandardScaler(), lasso())
    with pytest.warns(PrivacyWarning):
        model.fit(NUMBERS, NUMBERS[:, 0])
    for use in (
        lambda: riata.save(model, tmp_path / "m"),
        lambda: report.html(model),
        lambda: riata.export_onnx(model, tmp_path / "m"),
    ):
        with pytest.warns(PrivacyWarning), pytest.raises(InvalidArgument, match="SchemaEncoder"):
            use()
