"""One page about a model: what it says, what it promises, and what it cost.

The page is a single file without scripts that loads nothing, so it can be mailed, printed and
archived. It reads the model and the ledger, and never a row. It needs the extra `riata[report]`.
"""

from riata.report.page import Section, html, write

__all__ = ["Section", "html", "write"]
