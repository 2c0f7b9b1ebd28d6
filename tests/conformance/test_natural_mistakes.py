"""The mistakes of docs/mistakes.md: none of them spends a budget without a word.

Those that only rows can show are told from releases. Their fits have a false-alarm rate that does
not matter here: an assertion fails only if nothing is said about a fit of pure noise, for which
the fits of this file, whose targets are constant after encoding, have no signal at all.
"""

import gzip
import io
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import riata
from riata import (
    Bounds,
    Budget,
    BudgetExceeded,
    Ledger,
    PrivateLasso,
    PrivateLogisticRegression,
    read,
)
from riata.cli.main import main
from riata.errors import InvalidArgument

SCHEMA = """
features = [
    {name = "age", kind = "number", bounds = [0, 100]},
    {name = "smoker", kind = "yes-no"},
]
target = {name = "cost", bounds = [0, 1000]}
"""
RNG = np.random.default_rng(0)
N = 2000
AGE, SMOKES = RNG.integers(0, 100, N), RNG.integers(0, 2, N)
X = np.column_stack([AGE / 100, SMOKES])
Y = 0.6 * X[:, 0] + 0.3 * X[:, 1]
FIT = ["fit", "--schema", "s.toml", "--data", "d.csv", "--out", "m", "--ledger", "l.db", "--yes"]
#: What is said about a fit may depend on its noise; seeds are refused beside a ledger.
SEEDED = [*(one for one in FIT if one not in ("--ledger", "l.db")), "--seed", "0"]


def table(cost=None):
    smoker = np.where(SMOKES, "yes", "no")
    return pd.DataFrame({"age": AGE, "smoker": smoker, "cost": 1000 * Y if cost is None else cost})


@pytest.fixture
def ledger():
    return Ledger.create(":memory:", dataset="d", ceiling=Budget(100.0, 1e-6))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(SCHEMA)
    table().to_csv("d.csv", index=False)
    Ledger.create("l.db", dataset="d", ceiling=Budget(200.0, 1e-1))
    return tmp_path


@pytest.fixture
def command(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["riata", *arguments])
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        with pytest.raises(SystemExit) as end:
            main()
        told = capsys.readouterr()
        return end.value.code or 0, " ".join((told.out + told.err).split())

    return run


def charged():
    return len(Ledger.open("l.db").charges)


def test_01_no_bounds(ledger):
    with pytest.raises(InvalidArgument, match="needs bounds"):
        PrivateLasso(1.0, ledger=ledger).fit(X, Y)
    assert ledger.charges == []


def test_02_an_interval_for_a_bound(ledger):
    with pytest.raises(InvalidArgument, match="could be an interval"):
        PrivateLasso(1.0, bounds=Bounds(x=(0, 1), y=1.0), ledger=ledger).fit(X, Y)
    assert ledger.charges == []


def test_03_no_classes(ledger):
    with pytest.raises(InvalidArgument, match="needs classes"):
        PrivateLogisticRegression(1.0, bounds=Bounds(1.0), ledger=ledger).fit(X, SMOKES)
    assert ledger.charges == []


@pytest.mark.parametrize(
    ("classes", "y"),
    [
        (["0", "1"], SMOKES),
        (["0", "1"], SMOKES.astype(float)),
        (["0", "1"], pd.Series(SMOKES)),
        ([0, 1], SMOKES.astype(str)),
        ([0, 1], pd.Series(SMOKES.astype(str), dtype="string")),
    ],
)
def test_04_classes_of_another_type(ledger, classes, y):
    model = PrivateLogisticRegression(1.0, bounds=Bounds(1.0), classes=classes, ledger=ledger)
    with pytest.raises(InvalidArgument, match="no label could be one of them"):
        model.fit(X, y)
    assert ledger.charges == []


def test_05_classes_spelt_otherwise(here, command):
    labels = SCHEMA.replace("bounds = [0, 1000]", 'classes = ["no", "yes"]')
    (here / "s.toml").write_text(labels)
    table(np.where(Y > 0.4, "Yes", "No")).to_csv("d.csv", index=False)
    code, said = command(*SEEDED, "--epsilon", "2", "--delta", "1e-7")
    assert code == 0
    assert "is none of the classes: check the spelling" in said
    assert "was learned" in said
    assert "spells the classes as the schema does ('no', 'yes')" in said
    assert riata.load("m/model.riata").summary().advice


def test_06_a_column_that_is_not_there(here, command):
    (here / "s.toml").write_text(SCHEMA.replace('"age"', '"agee"'))
    code, said = command(*FIT, "--epsilon", "1")
    assert code == 4
    assert "no column 'agee'" in said
    assert charged() == 0


def test_07_no_header(here, command):
    table().to_csv("d.csv", index=False, header=False)
    code, said = command(*FIT, "--epsilon", "1")
    assert code == 4
    assert "first line must name the columns" in said
    assert str(AGE[0]) not in re.sub(r"'[^']*'", "", said).split()
    assert charged() == 0


def test_08_another_separator(here, command):
    table().to_csv("d.csv", index=False, sep=";")
    code, said = command(*FIT, "--epsilon", "1")
    assert code == 4
    assert 'separator = ";"' in said
    assert charged() == 0


def test_09_the_wrong_kind_of_model(here, command, ledger):
    code, said = command(*FIT, "--epsilon", "1", "--estimator", "logistic")
    assert code == 2
    assert "predicts classes" in said
    assert charged() == 0
    source = read(table(np.where(Y > 0.4, "y", "n")), {
        "features": [{"name": "age", "kind": "number", "bounds": [0, 100]}],
        "target": {"name": "cost", "classes": ["n", "y"]}, "ignore_others": True,
    })  # fmt: skip
    with pytest.raises(InvalidArgument, match="predicts numbers"):
        PrivateLasso(1.0, ledger=ledger).fit(source)
    assert ledger.charges == []


@pytest.mark.parametrize("kind", ["string", "category", "datetime64[ns]"])
def test_10_columns_of_texts_as_rows(ledger, kind):
    column = pd.Series(["2020-01-01", "2020-01-02"] * (N // 2)).astype(kind)
    model = PrivateLasso(1.0, bounds=Bounds(1.0, 1.0), ledger=ledger)
    with pytest.raises(InvalidArgument, match="The column 'when' of X is not numeric"):
        model.fit(pd.DataFrame({"age": X[:, 0], "when": column}), Y)
    assert ledger.charges == []


def test_11_an_epsilon_that_is_none(here, command):
    assert command(*FIT, "--epsilon", "0")[0] == 2
    assert command(*FIT)[0] == 2
    assert charged() == 0
    code, said = command(*FIT, "--epsilon", "95", "--delta", "1e-7")
    assert code == 0
    assert said.index("protects little") < said.index("Ledger of")
    model = riata.load("m/model.riata")
    assert any("protects little" in note for note in model.privacy_.notes)


def test_12_a_delta_that_is_not_small(here, command):
    code, said = command(*FIT, "--epsilon", "1", "--delta", "0.05")
    assert code == 0
    assert said.index("publishing one random row") < said.index("Ledger of")


def test_13_the_same_fit_again(here, command):
    first = command(*FIT, "--epsilon", "1", "--delta", "1e-7")
    assert "charged before" not in first[1]
    code, said = command(*FIT, "--epsilon", "1", "--delta", "1e-7")
    assert code == 2
    assert "it was paid for" in said
    assert charged() == 1
    code, said = command(*FIT, "--epsilon", "1", "--delta", "1e-7", "--force")
    assert code == 0
    assert "charged before (charge 1)" in said
    assert said.index("charged before") < said.index("Ledger of")


def test_14_a_ledger_that_does_not_allow_it(here, command):
    people = Ledger.create("p.db", dataset="d", ceiling=Budget(9.0, 1e-6, "replace-person"))
    code, said = command(*FIT, "--ledger", "p.db", "--epsilon", "1", "--delta", "1e-7")
    assert code == 3
    assert "protects people" in said
    assert people.charges == []
    code, said = command(*FIT, "--epsilon", "500", "--delta", "1e-7")
    assert code in (2, 3)
    assert charged() == 0
    small = Ledger.create(":memory:", dataset="d", ceiling=Budget(0.5, 1e-6))
    with pytest.raises(BudgetExceeded):
        PrivateLasso(1.0, 1e-6, bounds=Bounds(1.0, 1.0), ledger=small).fit(X, Y)
    assert small.charges == []


def test_15_a_seed_that_was_left_in(here, command, ledger):
    with pytest.raises(InvalidArgument, match="random_state"):
        PrivateLasso(1.0, bounds=Bounds(1.0, 1.0), ledger=ledger, random_state=0).fit(X, Y)
    assert ledger.charges == []
    code, said = command(*FIT, "--epsilon", "1", "--seed", "0")
    assert code == 2
    assert charged() == 0
    code, said = command(*SEEDED, "--epsilon", "1")
    assert code == 0
    assert "the model protects nobody" in said
    assert "SEEDED: NOT PRIVATE" in said


def test_16_bounds_in_other_units(here, command):
    """Costs in cents, all of which are beyond the bounds in euros and clipped to the upper one."""
    table(1e5 * (1 + Y)).to_csv("d.csv", index=False)
    code, said = command(*SEEDED, "--epsilon", "2", "--delta", "1e-7")
    assert code == 0
    assert "was learned" in said
    assert "bounds no wider than what can occur, and no narrower" in said


def seeded_fit(command):
    """What is said about a fit with a known noise, which ends well."""
    code, said = command(*SEEDED, "--epsilon", "2", "--delta", "1e-7")
    assert code == 0, said
    return said


def test_17_decimal_commas(here, command):
    (here / "s.toml").write_text(f'separator = ";"\n{SCHEMA}')
    table().to_csv("d.csv", index=False, sep=";", decimal=",")
    said = seeded_fit(command)
    assert "of 'cost' is missing or cannot be read" in said
    assert "without a decimal comma, a sign between thousands" in said
    assert "was learned" in said


def test_18_signs_and_units_behind_numbers(here, command):
    frame = table()
    frame["age"] = [f"{age} %" for age in AGE]
    frame.to_csv("d.csv", index=False)
    said = seeded_fit(command)
    assert "of 'age' is missing or cannot be read" in said
    assert "a percent sign or a unit" in said


def test_19_the_target_among_the_features(here, command):
    twice = SCHEMA.replace("= [\n", '= [{name = "cost", kind = "number", bounds = [0, 9]},\n', 1)
    (here / "s.toml").write_text(twice)
    code, said = command(*FIT, "--epsilon", "1")
    assert code == 4
    assert "The column 'cost' stands twice in the schema" in said
    assert charged() == 0


def test_20_no_row_has_a_target(here, command):
    table(np.full(N, np.nan)).to_csv("d.csv", index=False)
    said = seeded_fit(command)
    assert "of 'cost' is missing or cannot be read" in said
    assert "was learned" in said
    assert "Check that the column 'cost' holds numbers" in said


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [("[0, 100]", "[100, 0]", "'age'"), ("[0, 1000]", "[1000, 0]", "target.bounds")],
)
def test_21_bounds_in_the_other_order(here, command, old, new, where):
    (here / "s.toml").write_text(SCHEMA.replace(old, new))
    code, said = command(*FIT, "--epsilon", "1")
    assert code == 4
    assert where in said
    assert "the first number must be below the second" in said
    assert charged() == 0


def test_22_dates_written_in_another_way(here, command):
    dates = '= [{name = "day", kind = "date", bounds = ["2020-01-01", "2020-12-31"]},\n'
    (here / "s.toml").write_text(SCHEMA.replace("= [\n", dates, 1))
    frame = table()
    frame["day"] = [f"{1 + k % 28}.{1 + k % 12}.2020" for k in range(N)]
    frame.to_csv("d.csv", index=False)
    said = seeded_fit(command)
    assert "of 'day' is missing or cannot be read" in said
    assert "or as format = ... in the schema says" in said


def test_23_capitals_and_spaces_in_names_of_columns(here, command):
    table().rename(columns={"age": "Age ", "smoker": "SMOKER"}).to_csv("d.csv", index=False)
    code, said = command(*FIT, "--epsilon", "1")
    assert code == 4
    assert "no column 'age', 'smoker'" in said
    assert "Capitals, spaces and signs count, and only they differ in 'age', 'smoker'" in said
    assert "SMOKER" not in said  # the first line may be a row
    assert charged() == 0


def test_24_a_spreadsheet(here, command):
    (here / "d.xlsx").write_bytes(b"PK\x03\x04")
    code, said = command(*FIT, "--epsilon", "1", "--data", "d.xlsx")
    assert code == 4
    assert "from a spreadsheet as CSV in UTF-8" in said
    table().to_csv("d.csv", index=False, encoding="utf-16")
    code, said = command(*FIT, "--epsilon", "1")
    assert code == 4
    assert "begins as a text in UTF-16 does" in said
    assert charged() == 0


def test_25_a_header_that_names_a_column_twice_and_files_without_rows(here, command):
    (here / "d.csv").write_text("age,smoker,cost,age\n1,yes,2,3\n")
    code, said = command(*FIT, "--epsilon", "1")
    assert code == 4
    assert "several columns called 'age'" in said
    for text, why in (("age,smoker,cost\n", "has no rows"), ("", "has no header")):
        (here / "d.csv").write_text(text)
        code, said = command(*FIT, "--epsilon", "1")
        assert code == 4
        assert why in said
    assert charged() == 0


def test_26_a_comma_in_an_epsilon_and_files_in_each_others_place(here, command):
    code, said = command(*FIT, "--epsilon", "1,0")
    assert code == 2
    assert "--epsilon" in said
    assert "valid number" in said
    for wrong in (["--schema", "d.csv"], ["--data", "s.toml"], ["--data", "none.csv"]):
        assert command(*FIT, "--epsilon", "1", *wrong)[0] == 4
    assert charged() == 0


def test_27_the_target_under_another_name(here, command):
    twice = SCHEMA.replace("= [\n", '= [{name = "paid", kind = "number", bounds = [0, 1000]},\n', 1)
    (here / "s.toml").write_text(twice)
    cost = np.random.default_rng(1).integers(0, 1000, N)
    table(cost).assign(paid=cost).to_csv("d.csv", index=False)
    code, said = command(*SEEDED, "--epsilon", "20", "--delta", "1e-7")
    assert code == 0
    assert "If that is too good to be true, a column may be another form of the target" in said
    assert "look at paid" in said


def test_28_categories_spelt_otherwise(here, command):
    wards = '= [{name = "ward", kind = "choice", choices = ["north", "south"]},\n'
    (here / "s.toml").write_text(SCHEMA.replace("= [\n", wards, 1))
    table().assign(ward=np.where(SMOKES, "North", "SOUTH")).to_csv("d.csv", index=False)
    said = seeded_fit(command)
    assert "of 'ward' is none of its choices" in said
    assert "check the spelling" in said


def test_29_another_yes_and_no(here, command):
    table().assign(smoker=np.where(SMOKES, "ja", "nein")).to_csv("d.csv", index=False)
    said = seeded_fit(command)
    assert "of 'smoker' is missing or cannot be read" in said
    assert "yes and no as yes, no, true, false, 1 or 0" in said


@pytest.mark.parametrize("factor", [100, 1e-3])
def test_30_a_feature_in_other_units(here, command, factor):
    """Percent for parts, cents for euros. Too small a unit can only be seen in the model."""
    table().assign(age=AGE * factor).to_csv("d.csv", index=False)
    said = seeded_fit(command)
    assert ("of 'age' is outside of its bounds: check the units" in said) == (factor > 1)


def test_31_signs_between_thousands(here, command):
    text = [f"{1000 * cost:,.0f}" for cost in 10 * Y]
    table(text).to_csv("d.csv", index=False)
    said = seeded_fit(command)
    assert "of 'cost' is" in said
    assert "a sign between thousands" in said
    unquoted = "".join(f"{age},1,{cost}\n" for age, cost in zip(AGE, text, strict=True))
    (here / "d.csv").write_text("age,smoker,cost\n" + unquoted)
    code, said = command(*SEEDED, "--epsilon", "2", "--delta", "1e-7", "--force")
    assert code == 0
    assert "blank in every column" in said
    assert "another number of fields than the first" in said


def test_32_too_many_or_too_few_rows_in_the_schema(here, command):
    (here / "s.toml").write_text(f"rows = {10 * N}\n{SCHEMA}")
    said = seeded_fit(command)
    assert said.index(f"The fit counts {10 * N:,} rows, as the schema says") < said.index("Plan")
    assert "of the rows are blank in every column" in said
    (here / "s.toml").write_text(f"rows = {N // 10}\n{SCHEMA}")
    _, said = command(*FIT, "--epsilon", "1", "--delta", "1e-7", "--force")
    assert "more of them are left out" in said


def test_33_hardly_any_rows(here, command):
    table()[:20].to_csv("d.csv", index=False)
    code, said = command(*FIT, "--epsilon", "1", "--delta", "1e-7")
    assert code == 0
    assert said.index("The number of rows, 20, is small for epsilon 1") < said.index("Ledger of")
    assert "too few rows at this epsilon to count what is wrong" in said


def test_34_numbers_for_classes_that_are_words_in_the_file(here, command):
    (here / "s.toml").write_text(SCHEMA.replace("bounds = [0, 1000]", "classes = [0, 1]"))
    table(np.where(Y > 0.4, "TRUE", "FALSE")).to_csv("d.csv", index=False)
    said = seeded_fit(command)
    assert "is none of the classes: check the spelling" in said


def test_35_rows_without_an_id(here, command):
    people = 'person = "who"\nrows_of_a_person = 1\n' + SCHEMA
    (here / "s.toml").write_text(people)
    who = [f"p{k}" if k % 3 else "" for k in range(N)]
    table().assign(who=who).to_csv("d.csv", index=False)
    said = seeded_fit(command)
    assert said.index("Rows without an id are left out") < said.index("Plan")
    assert f"of {N - len(range(0, N, 3)):,} people" in said


def test_36_compressed_files_and_json(here, command):
    (here / "d.csv").write_bytes(gzip.compress(b"age,smoker,cost\n1,yes,2\n"))
    code, said = command(*FIT, "--epsilon", "1")
    assert code == 4
    assert "Name it .csv.gz" in said
    (here / "d.jsonl").write_text('{"age": 1}')
    code, said = command(*FIT, "--epsilon", "1", "--data", "d.jsonl")
    assert code == 4
    assert "has no header that names its columns" in said
    assert charged() == 0


def test_what_makes_no_difference(here, command):
    """A mark of byte order, line ends of Windows, spaces around cells."""
    labels = SCHEMA.replace("bounds = [0, 1000]", 'classes = ["no", "yes"]')
    (here / "s.toml").write_text(labels)
    frame = table(np.where(Y > 0.4, "yes", "no"))
    frame.to_csv("d.csv", index=False)
    seeded_fit(command)
    expected = riata.load("m/model.riata").coef_
    frame["cost"] = "  " + frame["cost"] + " "
    frame.to_csv("d.csv", index=False, encoding="utf-8-sig", lineterminator="\r\n")
    code, _ = command(*SEEDED, "--epsilon", "2", "--delta", "1e-7", "--force")
    assert code == 0
    np.testing.assert_array_equal(riata.load("m/model.riata").coef_, expected)


def test_classes_that_are_numbers_are_compared_as_numbers(here, command):
    (here / "s.toml").write_text(SCHEMA.replace("bounds = [0, 1000]", "classes = [0, 1]"))
    for labels in (1 * (Y > 0.4), 1.0 * (Y > 0.4)):
        table(labels).to_csv("d.csv", index=False)
        code, said = command(*SEEDED, "--epsilon", "2", "--delta", "1e-7", "--force")
        assert code == 0
        assert "none of the classes" not in said


def test_the_page_lists_exactly_these():
    page = (Path(__file__).parents[2] / "docs" / "mistakes.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (\d+) \|", page, re.MULTILINE)
    made = sorted({int(name[5:7]) for name in globals() if re.match(r"test_\d\d_", name)})
    assert [int(number) for number in listed] == made == list(range(1, 37))
