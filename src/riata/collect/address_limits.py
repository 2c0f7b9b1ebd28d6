"""What one address may take: connections at once, and reports in an hour.

Addresses are kept in memory only, as keyed digests whose key dies with the process.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from riata.errors import CollectError

#: Reports of one address in an hour where no tokens are asked for. A large office or school behind
#: one address passes; millions do not.
REPORTS_PER_HOUR = 10_000
#: Connections of one address at once. Idle ones make room for new ones.
CONNECTIONS = 100
#: Reports that a store without tokens may have: so many times the expected number, or a number.
CAP_FACTOR, SMALLEST_CAP, DEFAULT_CAP = 10, 10_000, 1_000_000
_HOUR = 3600.0
_MOST_ADDRESSES = 100_000
_SECRET = os.urandom(32)


@dataclass(frozen=True)
class Limits:
    """What strangers may take, as `riata collect serve` has it; 0 stands for no limit."""

    #: Of one address, at once.
    connections: int = CONNECTIONS
    reports_per_hour: int = 0
    #: That a store may have.
    most_reports: int = 0

    @classmethod
    def with_defaults(
        cls,
        *,
        tokens: bool,
        people: int = 0,
        connections: int | None = None,
        reports_per_hour: int | None = None,
        most_reports: int | None = None,
    ) -> Limits:
        """What was asked for, and defaults for the rest. Tokens limit reports already."""
        if connections is None:
            connections = CONNECTIONS
        if reports_per_hour is None:
            reports_per_hour = 0 if tokens else REPORTS_PER_HOUR
        if most_reports is None:
            expected = max(SMALLEST_CAP, CAP_FACTOR * people) if people else DEFAULT_CAP
            most_reports = 0 if tokens else expected
        return cls(connections, reports_per_hour, most_reports)

    def __str__(self) -> str:
        parts = [
            f"{self.connections:,} connections" if self.connections else "",
            f"{self.reports_per_hour:,} reports an hour" if self.reports_per_hour else "",
        ]
        text = " and ".join(part for part in parts if part)
        text = f"{text} from one address" if text else "none for one address"
        return text + (f", {self.most_reports:,} reports in all" if self.most_reports else "")


class Proxies:
    """Reverse proxies, or their networks: only they may say in X-Forwarded-For who sends."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.networks = [_network(name) for name in names]

    @property
    def names(self) -> list[str]:
        return [str(one) for one in self.networks]

    def __bool__(self) -> bool:
        return bool(self.networks)

    def __contains__(self, host: str) -> bool:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return any(address in network for network in self.networks)


def _network(name: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        network = ipaddress.ip_network(name)
    except ValueError:
        raise CollectError(
            f"--trusted-proxy is {name!r}. It must be an address or a network, such as 127.0.0.1 "
            "or 10.0.0.0/8."
        ) from None
    if network.prefixlen == 0:
        raise CollectError(
            f"--trusted-proxy is {name!r}, which is everybody: each sender could then choose an "
            "address, and no limit would hold. Name the proxy."
        )
    return network


def address_digest(host: str | None) -> int:
    """A number for an address. One of IPv6 stands for its network: people get /64 ones."""
    try:
        address = ipaddress.ip_address(host or "")
        if isinstance(address, ipaddress.IPv6Address):
            packed = address.ipv4_mapped.packed if address.ipv4_mapped else address.packed[:8]
        else:
            packed = address.packed
    except ValueError:
        packed = b""  # whatever a proxy says instead of an address is one address
    digest = hashlib.blake2b(packed, digest_size=8, key=_SECRET).digest()
    return int.from_bytes(digest, "big")


class ReportRate:
    """Lets each address send so many reports in an hour.

    A bucket for each address that holds `per_hour` reports and fills up in an hour, kept as the
    time at which it will be full.
    """

    def __init__(self, per_hour: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_hour = per_hour
        self._clock = clock
        self._full_at: dict[int, float] = {}

    def take(self, host: str | None, reports: int) -> float:
        """Count reports of an address: 0.0, or the seconds to wait before they may be sent."""
        now, address = self._clock(), address_digest(host)
        full_at = max(now, self._full_at.get(address, now)) + _HOUR * reports / self.per_hour
        excess = full_at - now - _HOUR
        if excess > 1e-6:
            return excess
        self._full_at[address] = full_at
        if len(self._full_at) > _MOST_ADDRESSES:
            self._forget(now)
        return 0.0

    def refund(self, host: str | None, reports: int) -> None:
        """Reports that could not be kept were not sent."""
        address = address_digest(host)
        if address in self._full_at:
            self._full_at[address] -= _HOUR * reports / self.per_hour

    def _forget(self, now: float) -> None:
        """Forget those whose buckets are full, or at least the half that are fullest."""
        ordered = sorted(self._full_at.items(), key=lambda one: one[1])
        kept = [one for one in ordered[len(ordered) // 2 :] if one[1] > now]
        self._full_at = dict(kept)
