"""Names that were probably meant: what a message suggests for one that nobody knows."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    by_folded = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(name.casefold()[:200], by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def suggestion(name: str, known: Iterable[str], otherwise: str) -> str:
    close = nearest(name, known)
    return f'Did you mean "{close}"?' if close is not None else otherwise


def of_columns(missing: str, columns: Iterable[str]) -> str:
    names = list(columns)
    listed = ", ".join(f'"{name}"' for name in names)
    return suggestion(missing, names, f"Declare columns that it has: {listed}.")
