"""The library can be read: no file above 400 lines, no function above 60 besides its docstring.

And no class with more than 12 public methods, but for those that have a reason here.
"""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "riata"
FILES = sorted(SOURCE.rglob("*.py"))
MOST_LINES, MOST_OF_FUNCTION, MOST_METHODS = 400, 60, 12

FACTS = "facts that solvers ask for one by one; a method each, with its proof"
#: Classes with more public methods, and why.
LARGE = {
    "Bounds": FACTS,
    "Loss": FACTS,
    "LogLinkLoss": FACTS,
    "ConstraintSet": FACTS,
    "GroupL1Ball": FACTS,
    "Polytope": FACTS,
    "HardInstance": "one for each number of the lower bound's proof",
    "Fields": "one for each kind of value that a file can have",
    "Run": "one for each release of a refitted search, in the order of the algorithm",
}


def lines_of(function):
    """The lines of a function from its `def` to its end, without the docstring."""
    first = function.body[0]
    documented = ast.get_docstring(function, clean=False) is not None
    own = function.end_lineno - function.lineno + 1
    return own - (first.end_lineno - first.lineno + 1 if documented else 0)


def functions(text):
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]


def test_no_file_and_no_function_is_too_long():
    assert len(FILES) > 100
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= MOST_LINES, path
        long = [each.name for each in functions(text) if lines_of(each) > MOST_OF_FUNCTION]
        assert not long, path


def public_methods(kind):
    methods = [each for each in kind.body if isinstance(each, ast.FunctionDef)]
    properties = [
        each
        for each in methods
        if any("property" in ast.unparse(decorator) for decorator in each.decorator_list)
    ]
    named = {each.name for each in methods if not each.name.startswith("_")}
    return named - {each.name for each in properties}


def test_no_class_has_too_many_methods_without_a_reason():
    large = set()
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and len(public_methods(node)) > MOST_METHODS:
                large.add(node.name)
    assert large == set(LARGE)


@pytest.mark.parametrize("documented", [True, False])
def test_lines_are_counted_without_the_docstring(documented):
    said = '    """Says.\n\n    More.\n    """\n' if documented else ""
    (function,) = functions(f"def f(\n    x,\n):\n{said}    y = x\n    return y\n")
    assert lines_of(function) == 5
