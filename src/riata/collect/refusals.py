"""What senders hear whose reports were not kept, and under which reason they are counted."""

from __future__ import annotations

import json
from dataclasses import dataclass

#: Why the same answer was given, for counting: whatever is wrong with a request, its sender hears
#: the same.
REASONS = ("form", "task", "deadline", "body", "token", "used_token")


@dataclass(frozen=True)
class Refusal:
    """What a sender hears, and the reason that it is counted under."""

    reason: str
    status: int
    text: str
    #: Whether the collector failed, and not the sender.
    server_error: bool = False

    @property
    def body(self) -> bytes:
        return json.dumps({"error": self.text}).encode()


_AGAIN = "Send the same bytes again later."
_UNACCEPTED = {one: Refusal(one, 400, "The reports were not accepted.") for one in REASONS}
TOO_LARGE = Refusal("too_many_at_once", 413, "One request has more reports than an hour may have.")
TOO_MANY = Refusal("rate", 429, f"Too many reports came from this address. {_AGAIN}")
FULL = Refusal("no_room", 507, f"The collector has no room. {_AGAIN}", server_error=True)
MEMORY = Refusal("no_memory", 507, f"The collector has no room. {_AGAIN}", server_error=True)
CAPPED = Refusal("cap", 507, f"The collector has no room. {_AGAIN}")
STORE = Refusal("store", 503, f"The collector cannot keep reports now. {_AGAIN}", server_error=True)
#: Connections that found no place are counted too: `connection_limits` refuses them.
CONNECTION_REASONS = ("connections", "places")


def bad_request(reason: str) -> Refusal:
    """The answer to a request that is wrong."""
    return _UNACCEPTED[reason]
