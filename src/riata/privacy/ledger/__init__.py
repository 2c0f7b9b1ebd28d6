"""The record of what was spent on a data set, and the refusal to spend more than its ceiling.

- `ledger`: what users see; `creation`, `backup` and `export` are parts of it
- `charge`, `entries`: what a transaction reads and verifies
- `hash_chain`, `head`: how an edited or rolled back ledger is recognised
- `database`, `tables`, `location`: where the entries are
"""

from riata.privacy.ledger.backup import Restoration
from riata.privacy.ledger.charge import Charge
from riata.privacy.ledger.ledger import Ledger, Verification

__all__ = ["Charge", "Ledger", "Restoration", "Verification"]
