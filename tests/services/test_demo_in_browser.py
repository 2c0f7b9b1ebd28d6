"""The demo's report as a person sees it: in a real browser, without network or console errors."""

import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.services

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--v=0",
]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    subprocess.run([sys.executable, "-m", "riata.demo"], cwd=folder, check=True, timeout=3600)
    return folder / "demo.html"


def chromium(folder, page, *options):
    program = shutil.which("chromium")
    assert program, "tests/services/install.sh installs it"
    return subprocess.run(
        [program, *FLAGS, f"--user-data-dir={folder / 'profile'}", *options, page.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=3600,
    )


def test_the_report_says_what_it_must_and_logs_nothing(report, tmp_path):
    shown = chromium(tmp_path, report, "--dump-dom")
    assert "(1, 1e-06)-differentially private" in shown.stdout
    assert "<svg" in shown.stdout
    assert "CONSOLE" not in shown.stderr


def test_the_report_loads_nothing_from_elsewhere(report):
    text = report.read_text(encoding="utf-8")
    for way in ("src=", "<link", "@import", "<script", "url(http"):
        assert way not in text


@pytest.mark.parametrize("width", [1200, 390])
def test_the_report_renders_at_desktop_and_phone_width(report, tmp_path, width):
    picture = tmp_path / "page.png"
    chromium(tmp_path, report, f"--screenshot={picture}", f"--window-size={width},1400")
    assert picture.stat().st_size > 20_000
