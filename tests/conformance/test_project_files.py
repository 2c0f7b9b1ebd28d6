"""Files for contributors agree with the project: workflows, Makefile, metadata, package index."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TARGETS = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def targets_named_by(text):
    """Targets after `make` in a command of a workflow, or in code inside a page."""
    commands = re.findall(r"(?:^\s*(?:- )?(?:run: )?|`|    )make ((?:[a-z][a-z-]* ?)+)", text, re.M)
    return {target for command in commands for target in command.split()}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_run_targets_that_exist(path):
    named = targets_named_by(path.read_text(encoding="utf-8"))
    assert named
    assert named <= TARGETS


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", ".github/PULL_REQUEST_TEMPLATE.md", ".ci/run"])
def test_pages_for_contributors_name_targets_that_exist(name):
    named = targets_named_by(text_of(name))
    assert named
    assert named <= TARGETS


def test_every_target_is_in_the_help():
    shown = set(re.findall(r'@echo "make ([\w-]+) ', text_of("Makefile")))
    assert shown == TARGETS - {"help", "clean"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_and_permissions_are_the_least(path):
    text = path.read_text(encoding="utf-8")
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action
    assert re.search(r"^permissions:(?: \{\}|\n  contents: read)\n", text, re.M)
    assert text.count("persist-credentials: false") == text.count("actions/checkout@")


def test_the_tests_run_on_every_python_of_the_classifiers():
    classifiers = PROJECT["project"]["classifiers"]
    declared = [c.rsplit(" ", 1)[1] for c in classifiers if re.search(r":: 3\.\d+$", c)]
    (matrix,) = re.findall(r"python: (\[.*\])", text_of(".github/workflows/ci.yml"))
    assert re.findall(r"[\d.]+", matrix) == declared


def test_no_link_of_the_readme_is_relative_on_a_package_index():
    """The substitutions of hatch-fancy-pypi-readme, done by hand."""
    text = text_of("README.md")
    hook = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    for each in hook["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    links = re.findall(r'\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"', text)
    assert links
    assert [a or b for a, b in links if not (a or b).startswith("https://")] == []


@pytest.fixture
def check_release():
    spec = importlib.util.spec_from_file_location(
        "check_release", ROOT / "tools" / "check_release.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_release_needs_version_date_and_addresses(check_release, tmp_path):
    (tmp_path / "src/riata").mkdir(parents=True)
    (tmp_path / "src/riata/__init__.py").write_text('__version__ = "1.2.0"\n')
    (tmp_path / "CITATION.cff").write_text("type: software\nversion: 1.2.0\nlicense: x\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.0 (2027-01-31)\n")
    project = '[project.urls]\nSource = "https://code.test/riata"\n'
    (tmp_path / "pyproject.toml").write_text(project)
    assert check_release.problems("v1.2.0", tmp_path) == []
    assert len(check_release.problems("v1.3.0", tmp_path)) == 3
    (tmp_path / "pyproject.toml").write_text(project.replace("code.test", "riata.example"))
    assert len(check_release.problems("v1.2.0", tmp_path)) == 1
