"""The list of versions of the documentation, and the order in which they stand."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool():
    where = ROOT / "tools" / "versioned_docs.py"
    spec = importlib.util.spec_from_file_location("versioned_docs", where)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_releases_are_in_the_order_of_their_numbers(tool):
    refs = ["v0.9.0", "dev", "v0.10.0", "v0.10.0-rc1", "v0.2.10", "v0.2.9"]
    assert tool.in_order(refs) == ["v0.10.0", "v0.9.0", "v0.2.10", "v0.2.9", "dev", "v0.10.0-rc1"]


def test_the_newest_release_is_preferred(tool):
    found = tool.listed(["v0.9.0", "dev", "v0.10.0"], "https://riata.example/docs/")
    assert [each["version"] for each in found] == ["0.10.0", "0.9.0", "dev"]
    assert [each["preferred"] for each in found] == [True, False, False]
    assert found[0]["name"] == "0.10.0 (newest)"
    assert found[1]["url"] == "https://riata.example/docs/0.9.0/"
    assert [each["url"] for each in tool.listed(["dev"], "/")] == ["/dev/"]
    assert tool.listed(["dev"], "/")[0]["name"] == "dev"


def test_a_name_is_a_folder(tool):
    assert tool.named("v1.2.3") == "1.2.3"
    assert tool.named("origin/some branch") == "origin-some-branch"


def test_the_page_above_leads_to_one_version(tool):
    assert (
        re.findall(r'(?:url=|href=")([^"]+)"', tool.redirect("0.1.0")) == ["0.1.0/index.html"] * 2
    )


def test_pages_load_the_list_from_beside_them_and_no_network():
    said = (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
    assert re.search(r'"json_url": "\.\./versions\.json"', said)
    assert "http" not in said.split("RIATA_DOCS_VERSION")[1].split("html_sidebars")[0]
