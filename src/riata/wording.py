"""Numbers with their nouns."""


def number_of(n: int, one: str, many: str | None = None) -> str:
    """Such as "1 report" or "2,000 reports"."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"
