"""Options of connectors: key, type, and allowed values."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto
from typing import Any

PEM: dict[str, Any] = {
    "reference": True,
    "pattern": r"\$\{secret:[^{}]{1,128}\}",
    "form": "${secret:name} of a secret that holds a PEM text",
}
"""Of an option that is a certificate or a key."""
ADDRESS: dict[str, Any] = {
    "pattern": (
        r"https?://(?:[A-Za-z0-9][A-Za-z0-9_.-]{0,252}|\[[0-9A-Fa-f:.]+\])"
        r"(?::(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]"
        r"|6553[0-5]))?(?:/[A-Za-z0-9._~/-]{0,200})?"
    ),
    "form": "http://host:port or https://host:port, without a login",
}
"""Of an option that is where a service answers by HTTP."""

HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,252})|\[[0-9A-Fa-f:.]+\])"


class TableRole(StrEnum):
    """What a table is in the query that names it."""

    STREAM = "a stream"
    DIMENSION = "a dimension"
    SINK = "a sink"


READ = frozenset((TableRole.STREAM, TableRole.DIMENSION))


class OptionType(Enum):
    """How an option's value is read."""

    TEXT = auto()
    NUMBER = auto()
    DURATION = auto()
    MEMORY = auto()
    FLAG = auto()
    CHOICE = auto()


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a connector.

    Attributes:
        key: as in WITH; one segment may be `#`, a placeholder for a column name.
        default: as text; None leaves the option unset.
        lowest: inclusive, as is `highest`; a DURATION in milliseconds, a MEMORY in bytes.
        pattern: what a TEXT must match; `form` says it in words, also for a DURATION.
        credential: the value is a secret; an inline one is stored as a reference.
        reference: the value may be a `${secret:name}` reference.
        roles: roles in which it has an effect; in others it is accepted with a warning, or refused.
        instead: of an option that is accepted without effect: why, as the end of a sentence. Its
            key may end in `*`, which stands for any text.
        otherwise: hint for a value that is refused; one made of what it accepts when empty.
    """

    key: str
    meaning: str
    type: OptionType = OptionType.TEXT
    default: str | None = None
    required: bool = False
    lowest: int = 0
    highest: int = 2**63 - 1
    choices: tuple[str, ...] = ()
    pattern: str = r"[^\x00-\x1f\x7f]{1,1024}"
    form: str = "1 to 1,024 printable characters"
    credential: bool = False
    reference: bool = False
    roles: frozenset[TableRole] = frozenset(TableRole)
    instead: str = ""
    otherwise: str = ""


def ignored(instead: str, *keys: str) -> tuple[Option, ...]:
    """Options whose value has no meaning here, whatever it is."""
    return tuple(_ignored(key, instead) for key in keys)


def only_value(key: str, choices: Iterable[str], instead: str, otherwise: str) -> Option:
    """An option that may say what is done anyway; `otherwise` answers any other value."""
    option = replace(_ignored(key, instead), type=OptionType.CHOICE, choices=tuple(choices))
    return replace(option, otherwise=otherwise)


def _ignored(key: str, instead: str) -> Option:
    meaning = f"Accepted without effect: {instead}."
    form = "any text of at most 4,096 characters"
    return Option(key, meaning, pattern=r"(?s:.{0,4096})", form=form, instead=instead)


def with_prefix(prefix: str, *options: Option) -> tuple[Option, ...]:
    return tuple(replace(option, key=prefix + option.key) for option in options)


def only_of(options: Iterable[Option], *roles: TableRole) -> tuple[Option, ...]:
    return tuple(replace(option, roles=frozenset(roles)) for option in options)
