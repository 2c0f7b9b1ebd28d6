"""`riata schema`: drafts from public rows, and checks that read no row."""

import json
import sys
import tomllib

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from typer.testing import CliRunner

from riata import Schema, read
from riata.cli.main import app, main
from riata.data.schema_draft import draft, round_bounds
from riata.errors import DataError

N = 200
RNG = np.random.default_rng(2)
FRAME = pl.DataFrame(
    {
        "id": [f"p{i:04}" for i in range(N)],
        "number": range(10_000, 10_000 + N),
        "who": [i // 3 for i in range(N)],
        "age": RNG.integers(18, 88, N),
        "dose": RNG.uniform(0.11, 0.79, N),
        "smokes": RNG.choice(["yes", "no"], N),
        "well": RNG.choice([True, False], N),
        "ward": RNG.choice(["north", "[b]south[/b]"], N),
        "story": [f"came with pain number {i} and left" for i in range(N)],
        "stage": RNG.choice(["I", "II", "III"], N),
    }
)


@pytest.fixture
def file(tmp_path):
    FRAME.write_csv(tmp_path / "public.csv")
    return tmp_path / "public.csv"


def good(*arguments):
    done = CliRunner().invoke(app, ["schema", *map(str, arguments)])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


@pytest.fixture
def bad(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["riata", "schema", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code in (2, 4)
        told = capsys.readouterr()
        assert "Traceback" not in told.err
        return " ".join(told.err.split())

    return run


def test_a_draft_says_what_the_columns_are(file, tmp_path):
    out = tmp_path / "schema.toml"
    said = good("draft", file, "--public", "--target", "stage", "--person", "who", "--out", out)
    assert "Check every line" in said
    assert "CHECK EVERY LINE" in out.read_text()
    schema = Schema.load(out)
    assert schema.ignore == ("id", "number")
    assert (schema.person, schema.rows_of_a_person) == ("who", 1)
    kinds = {feature.name: feature.kind for feature in schema.features}
    assert kinds == {
        "age": "number", "dose": "number", "smokes": "yes-no", "well": "yes-no",
        "ward": "choice", "story": "text",
    }  # fmt: skip
    features = {feature.name: feature for feature in schema.features}
    assert features["age"].bounds == (10.0, 90.0)
    assert features["dose"].bounds == (0.1, 0.8)
    assert features["ward"].choices == ("[b]south[/b]", "north")
    assert schema.classes.tolist() == ["I", "II", "III"]
    assert read(file, schema).load()[0].shape[0] == 67


def test_a_draft_is_printed_without_a_file(file):
    assert Schema.read(good("draft", file, "--public", "--target", "age")).target.bounds
    table = json.loads(good("draft", file, "--public", "--json"))
    assert Schema.from_table(table).target is None


def test_a_draft_from_typed_columns(tmp_path):
    FRAME.write_parquet(tmp_path / "t.parquet")
    schema, *_ = draft(tmp_path / "t.parquet", target="well")
    assert schema.classes.tolist() == [False, True]
    assert read(tmp_path / "t.parquet", schema).load()[0].shape == (N, schema.n_features)


def drafted(tmp_path, **columns):
    pl.DataFrame(columns).write_csv(tmp_path / "t.csv")
    return draft(tmp_path / "t.csv")


def test_each_column_that_is_not_used_has_a_reason(file):
    found = draft(file, target="stage")
    assert found.remarks[:2] == (
        'Not used: "id", because nearly every row has a text of its own, as an id has.',
        'Not used: "number", because its numbers are those of a running number.',
    )
    for remark in found.remarks:
        assert f"# {remark}" in found.text
    done = CliRunner().invoke(app, ["schema", "draft", str(file), "--public", "--json"])
    assert 'Not used: "id", because' in done.stderr


def test_columns_that_say_nothing_are_not_used(tmp_path):
    found = drafted(tmp_path, a=["x"] * 9, b=["NA", "?"] * 4 + [""], c=list("abcabcabc"))
    assert found.schema.ignore == ("a", "b")
    assert '"a", because it has one value alone' in found.text
    assert '"b", because it has no value' in found.text
    with pytest.raises(DataError, match="No column"):
        drafted(tmp_path, a=["x"] * 9)


def test_tokens_for_missing_values_are_no_values(tmp_path):
    found = drafted(tmp_path, age=["NA", "?", "30", "41.5"], ward=["n/a", "b", "a", "None"])
    age, ward = found.schema.features
    assert age.kind == "number"
    assert ward.choices == ("a", "b")
    assert '# Taken for missing in "age": "?", "NA".' in found.text
    assert '# Taken for missing in "ward": "None", "n/a".' in found.text


def test_sizes_are_no_ids_and_ids_are_no_sizes(tmp_path):
    """In a small sample nearly every row has a salary of its own."""
    rng = np.random.default_rng(0)
    found = drafted(
        tmp_path, salary=rng.permutation(40_000)[:300] * 3, patientNbr=rng.permutation(9**9)[:300],
        shop_id=rng.integers(1, 9, 300), postcode_id=rng.integers(10_000, 10_090, 300),
    )  # fmt: skip
    kinds = {feature.name: feature.kind for feature in found.schema.features}
    assert kinds == {"salary": "number", "shop_id": "choice", "postcode_id": "hash"}
    assert list(found.schema.features)[1].choices == tuple("12345678")
    assert found.schema.ignore == ("patientNbr",)
    assert 'Check "salary": nearly every row has a whole number of its own.' in found.text
    assert 'such as "patientNbr" says whose row it is, name it with --person' in found.text
    assert "There is no target" in found.text


def test_numbers_are_written_as_people_write_them(tmp_path):
    days = [999] * 80 + list(range(20))
    text = drafted(tmp_path, days=days, age=list(range(20, 70)) * 2).text
    assert "bounds = [0, 1000] " in text
    assert "center = 999 " in text
    assert ".0" not in text


def test_the_centre_of_columns_that_are_mostly_zero(tmp_path):
    loss = [0.0] * 60 + [1.5, -0.5] * 20
    gain = [0] * 60 + [5, 9_000] * 20
    found = drafted(tmp_path, loss=loss, gain=gain, age=list(range(20, 70)) * 2)
    loss, gain, age = found.schema.features
    assert (loss.kind, loss.center) == ("number", 0.0)
    assert (gain.kind, gain.bounds) == ("count", (0.0, 9_000.0))
    assert (age.kind, age.center) == ("number", 45.0)


@pytest.mark.parametrize(
    ("written", "form", "parts"),
    [
        ("2013-05-{:02}", "", ("trend", "weekday")),
        ("2013-05-{:02} 10:30", "", ("trend", "weekday", "hour")),
        ("{:02}/05/2013", "%d/%m/%Y", ("trend", "weekday")),
        ("05/{:02}/2013", "%m/%d/%Y", ("trend", "weekday")),
        ("{:02}.05.2013", "%d.%m.%Y", ("trend", "weekday")),
    ],
)
def test_dates_are_dates(tmp_path, written, form, parts):
    (day,) = drafted(tmp_path, day=[written.format(1 + i % 28) for i in range(90)]).schema.features
    assert (day.kind, day.format, day.parts) == ("date", form, parts)
    assert day.bounds == ("2013-01-01", "2013-12-31")


def test_many_texts_are_hashed(tmp_path):
    codes = [f"c{i % 100}" for i in range(300)]
    words = [f"came with {i % 100}" for i in range(300)]
    user, note = drafted(tmp_path, user=codes, note=words).schema.features
    assert (user.kind, note.kind, note.buckets) == ("hash", "text", 2**14)
    assert user.buckets == 256  # for a hundred values


@pytest.mark.skipif(sys.platform == "win32", reason="names of files have one line there")
def test_the_name_of_a_file_writes_no_line_of_a_draft(tmp_path):
    path = tmp_path / 'a\npeople = 7\rignore = ["b"] #.csv'
    FRAME.write_csv(path)
    schema, text, _ = draft(path, target="stage")
    assert Schema.from_table(tomllib.loads(text)) == schema
    assert not schema.people
    assert text.startswith("# Drafted from a\\npeople = 7\\rignore")


def test_no_comment_of_a_draft_is_untrue(file):
    text = draft(file, target="stage").text
    assert "public knowledge" not in text


@pytest.mark.parametrize("shaped", [True, False])
def test_a_draft_of_columns_without_names(tmp_path, shaped):
    x = sparse.random_array((50, 30), density=0.3, rng=1, format="csr")
    x[0, 29] = -3.7
    x = x.tocsr()
    arrays = {"data": x.data, "indices": x.indices, "indptr": x.indptr, "y": np.arange(50) % 2}
    np.savez(tmp_path / "t.npz", **arrays, **({"shape": x.shape} if shaped else {}))
    schema, *_ = draft(tmp_path / "t.npz")
    assert (schema.features.count, schema.features.bound) == (30, 4.0)
    assert schema.classes.tolist() == [0, 1]
    assert read(tmp_path / "t.npz", schema).load()[0].shape == (50, 30)


def test_a_draft_needs_a_declaration(file, bad, tmp_path):
    said = bad("draft", file)
    assert "Pass --public if every row" in said
    assert "learn the largest value" in said
    assert "no column 'nothing'" in bad("draft", file, "--public", "--target", "nothing")
    (tmp_path / "t.toml").touch()
    assert "--force" in bad("draft", file, "--public", "--out", tmp_path / "t.toml")
    (tmp_path / "t.svm").write_text("1 1:1\n")
    assert "by hand" in bad("draft", tmp_path / "t.svm", "--public")


def test_a_check_reads_no_row(file, tmp_path, monkeypatch):
    schema, text, _ = draft(file, target="stage")
    (tmp_path / "s.toml").write_text(text)
    monkeypatch.setattr("riata.data.readers.csv_file.CsvReader.batches", None)
    said = good("check", tmp_path / "s.toml", file)
    assert f"encoded as {schema.n_features}" in said
    assert "No row was read" in said
    facts = json.loads(good("check", tmp_path / "s.toml", file, "--json"))
    assert facts["n_features"] == schema.n_features
    assert facts["classes"] == ["I", "II", "III"]
    length = facts["bounds"].pop("length")
    assert facts["bounds"] == {"x": 1.0, "y": None, "nonnegative": False}
    assert length == pytest.approx(7**0.5, rel=2e-3)  # one feature of each of the seven columns


def test_a_check_says_what_disagrees(file, tmp_path, bad):
    _, text, _ = draft(file, target="stage")
    (tmp_path / "s.toml").write_text(text)
    FRAME.drop("age").write_csv(tmp_path / "other.csv")
    assert "no column 'age'" in bad("check", tmp_path / "s.toml", tmp_path / "other.csv")
    FRAME.drop("stage").write_csv(tmp_path / "new.csv")
    assert "no column 'stage'" in bad("check", tmp_path / "s.toml", tmp_path / "new.csv")
    good("check", tmp_path / "s.toml", tmp_path / "new.csv", "--to-predict")
    (tmp_path / "s.toml").write_text(text.replace('"yes-no"', '"maybe"'))
    assert "must be one of" in bad("check", tmp_path / "s.toml")
    assert "Cannot read the schema" in bad("check", tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (18, 87, [10, 90]), (0.11, 0.79, [0.1, 0.8]), (0, 1, [0, 1]), (5, 5, [5, 5.5]),
        (0, 0, [0, 0.1]), (-3.2, 1e6, [-200_000, 1_000_000]), (-7, -6.91, [-7, -6.91]),
    ],
)  # fmt: skip
def test_bounds_are_rounded_outwards(low, high, said):
    found = round_bounds(low, high)
    assert found == said
    assert found[0] <= low <= high <= found[1]
