"""Sphinx configuration. Build with: sphinx-build -W --keep-going -b html docs docs/_build/html"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path

import riata

_here = Path(__file__).parent
sys.path.insert(0, str(_here.parent / "tools"))
from examples_of_names import examples_of_names  # noqa: E402
from notebooks import has_code, notebook  # noqa: E402

project = "riata"
author = "The riata developers"
copyright = "The riata developers"
version = release = riata.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_design",
    "numpydoc",
]

templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates"]
default_role = "py:obj"
nitpicky = False

# Markdown
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

# API pages
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

# Mathematics is typeset by MathJax from a local copy: the pages need no network.
_mathjax = importlib.util.find_spec("sphinx-mathjax-offline")
if _mathjax is None or _mathjax.origin is None:
    raise RuntimeError("The documentation needs the package sphinx-mathjax-offline.")
_mathjax_file = Path(_mathjax.origin).parent / "static" / "mathjax" / "tex-svg.js"
mathjax_path = _mathjax_file.name
mathjax3_config = {"tex": {"tags": "none"}, "svg": {"fontCache": "global"}}

# Pages
html_theme = "pydata_sphinx_theme"
html_title = f"riata {release}"
html_static_path = ["_static", str(_mathjax_file)]
html_css_files = ["riata.css"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "riata", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
# One of several versions beside each other (tools/versioned_docs.py): a list of them on every page.
if _version := os.environ.get("RIATA_DOCS_VERSION"):
    html_theme_options |= {
        "navbar_end": ["version-switcher", "theme-switcher"],
        "switcher": {"json_url": "../versions.json", "version_match": _version},
        "check_switcher": False,  # it is written above this version, after all of them
        "show_version_warning_banner": True,
    }
# Pages that are not part of a section have no navigation beside them.
_whole_width = [page.stem for page in Path(__file__).parent.glob("*.md")] + ["algorithms/*"]
html_sidebars: dict[str, list[str]] = {page: [] for page in _whole_width}


def _escape(app, what, name, obj, options, lines) -> None:  # type: ignore[no-untyped-def]
    """Docstrings write |x| for sizes and coef_ for attributes, which mean links in Sphinx."""
    for i, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...")) or " : " in line:
            continue
        parts = re.split(r"(`+[^`]+`+)", line)
        parts[::2] = [re.sub(r"\||(?<=\w)_(?!\w)", r"\\\g<0>", text) for text in parts[::2]]
        lines[i] = "".join(parts)


_examples = examples_of_names()


def _link_examples(app, what, name, obj, options, lines) -> None:  # type: ignore[no-untyped-def]
    """Below what a name is: the pages whose code uses it."""
    if what in ("class", "function", "exception", "data") and (pages := _examples.get(id(obj))):
        links = ", ".join(f":doc:`/{page}`" for page in pages[:8])
        lines += ["", f"**Code that uses it:** {links}", ""]


def _link_notebook(app, page, source) -> None:  # type: ignore[no-untyped-def]
    """At the end of a page with code: the same as a notebook, which the build writes beside it."""
    if app.builder.format == "html" and has_code(source[0]):
        _notebooks[page] = notebook(source[0])
        name = Path(page).name
        source[0] += f'\n\n```{{raw}} html\n<p><a href="{name}.ipynb" download>Notebook</a>'
        source[0] += " of this page, to download and run</p>\n```\n"


def _write_notebooks(app, problem) -> None:  # type: ignore[no-untyped-def]
    for page, text in _notebooks.items() if problem is None else ():
        (Path(app.outdir) / f"{page}.ipynb").write_text(text, encoding="utf-8")


_notebooks: dict[str, str] = {}


def setup(app) -> None:  # type: ignore[no-untyped-def]
    app.connect("autodoc-process-docstring", _escape, priority=100)
    app.connect("source-read", _link_notebook)
    app.connect("build-finished", _write_notebooks)
    app.connect("autodoc-process-docstring", _link_examples, priority=900)
