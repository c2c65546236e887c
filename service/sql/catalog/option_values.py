"""Checked values of WITH options, secrets in them, and what takes them: a connector.

A value may name a secret as `${secret:name}` if its option allows it; any other `${…}` is refused.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from joins.plan.durations import duration_ms
from joins.plan.formats import KafkaFormat
from joins.plan.plan import (
    DatagenSource,
    DimensionSource,
    Field,
    KafkaSource,
    Sink,
    TableStream,
)
from service.sql.catalog.option import Option, OptionType
from service.sql.grammar.syntax import OptionNode
from service.sql.text.script import (
    Edit,
    Script,
    SqlError,
    masked_comments,
    may_be_credential,
    suggestion,
)

FORMAT_OPTION = re.compile(
    rf"(?P<role>(?:key|value)\.)?(?P<format>{'|'.join(map(re.escape, KafkaFormat))})\."
)
"""What an option of a format begins with."""
SECRET = re.compile(r"\$\{secret:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\}")
_MEMORY_UNITS = {
    unit: 1 << shift
    for shift, units in (
        (0, ("", "b", "bytes")),
        (10, ("k", "kb", "kibibytes")),
        (20, ("m", "mb", "mebibytes")),
        (30, ("g", "gb", "gibibytes")),
        (40, ("t", "tb", "tebibytes")),
    )
    for unit in units
}
_EXPLAINED_VALUES = {
    "exactly-once": "Write to delta for exactly once; kafka rows carry their source coordinates.",
}


@dataclass(frozen=True, slots=True)
class OptionValues:
    """The checked options of one table; keys with `#` appear with the column's name.

    Attributes:
        ignored: those that are accepted without effect, which no connector sees.
        notes: warnings about options without effect.
        prefix: what the keys begin with in WITH; not in `nodes` and `options`.
    """

    # reads better long: each method reads or checks one kind of value of the same table.

    script: Script
    nodes: dict[str, OptionNode]
    options: dict[str, Option]
    at: int
    table: str = ""
    ignored: dict[str, OptionNode] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    prefix: str = ""

    def part(self, prefix: str, options: Iterable[Option]) -> "OptionValues":
        """The options behind `prefix`, as those of a table that has only them."""
        nodes = {
            key.removeprefix(prefix): node
            for key, node in self.nodes.items()
            if key.startswith(prefix)
        }
        return replace(self, nodes=nodes, options={o.key: o for o in options}, prefix=prefix)

    def text(self, key: str) -> str | None:
        node = self.nodes.get(key)
        return node.value if node is not None else self.option(key).default

    def option(self, key: str) -> Option:
        option = declared_option(self.options, key)
        assert option is not None, "unknown options are refused first"
        return option

    def required(self, key: str) -> str:
        value = self.text(key)
        if value is None:
            raise self.script.error(
                self.at,
                f'option "{self.prefix}{key}" is missing',
                hint=f"Add '{self.prefix}{key}' = '…' to WITH (…).",
                edit=self.added(key),
            )
        return value

    def added(self, key: str) -> Edit | None:
        """The option with a value to be filled in, in front of the others."""
        if not self.nodes:
            return None
        first = min(node.at for node in self.nodes.values())
        value = example(key, self.option(key), self.table)
        name = self.prefix + key
        text = f"{literal(name)} = {literal(value)}, "
        return Edit(first, first, text, note=f"Fill in the value of '{name}'.")

    def ignore(self, key: str, why: str) -> None:
        self.ignored[key] = self.nodes.pop(key)
        self.notes.append(f'Option "{key}" of table "{self.table}" has no effect: {why}.')

    def note(self, key: str, what: str) -> None:
        self.notes.append(f'Option "{key}" of table "{self.table}": {what}.')

    def is_set(self, key: str) -> bool:
        return key in self.nodes

    def number(self, key: str) -> int | None:
        value = self.text(key)
        return None if value is None else int(value)

    def milliseconds(self, key: str) -> int:
        return duration_ms(self.required(key)) or 0

    def milliseconds_if_set(self, key: str) -> int | None:
        return self.milliseconds(key) if self.is_set(key) else None

    def flag(self, key: str) -> bool:
        return (self.text(key) or "false").lower() == "true"

    def require_beside(self, key: str, other: str) -> None:
        if self.text(key) is not None and self.text(other) is None:
            node = self.nodes.get(key)
            raise self.script.error(
                self.at if node is None else node.at,
                f'option "{key}" needs "{other}"',
                hint=f"Add '{other}' to WITH (…).",
                edit=self.added(other),
            )

    def require_pair(self, one: str, other: str) -> None:
        self.require_beside(one, other)
        self.require_beside(other, one)

    def error(self, key: str, message: str, *, hint: str, is_needless: bool = False) -> SqlError:
        """The refusal of an option; `is_needless` if the script is right without the option."""
        node = self.nodes.get(key)
        if node is None:
            return self.script.error(self.at, message, hint=hint)
        edit = removed(self.script, node, sure=is_needless)
        return self.script.error(node.at, message, hint=hint, edit=edit)


def memory_bytes(text: str) -> int | None:
    """The bytes of a size in Flink's form, such as `64 mb` or `1g`; None if malformed."""
    match = re.fullmatch(r"(\d{1,15})\s*([a-z]*)", text.strip().lower(), re.ASCII)
    if match is None or match[2] not in _MEMORY_UNITS:
        return None
    return int(match[1]) * _MEMORY_UNITS[match[2]]


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_EXAMPLES = {
    "properties.bootstrap.servers": "localhost:9092",
    "hostname": "localhost",
    "username": "cdc",
    "database-name": "shop",
    "format": "json",
    "key.format": "json",
    "value.format": "json",
}


def example(key: str, option: Option, table: str) -> str:
    """A value that the option takes; a secret is named, never invented."""
    if option.credential or option.reference:
        return _EXAMPLES.get(key) or f"${{secret:{table or 'table'}-{key.rpartition('.')[2]}}}"
    if option.default is not None:
        return option.default
    if option.choices:
        return _EXAMPLES.get(key, option.choices[0])
    if key.endswith("url") or key.endswith("uri"):
        return "http://localhost:8081"
    if option.type is OptionType.NUMBER:
        return str(max(option.lowest, 1))
    return _EXAMPLES.get(key, table or "name")


def removed(script: Script, node: OptionNode, *, sure: bool = True) -> Edit:
    """The option and the comma beside it are removed."""
    return without(script, node.at, node.end, sure=sure)


def without(script: Script, start: int, end: int, *, sure: bool) -> Edit:
    """The member of a list and the comma beside it are removed."""
    text = script.text
    behind = re.compile(r"(?:\s|--[^\n]*\n)*,[^\S\n]*").match(text, end)
    if behind is not None:
        end = behind.end()
    else:
        before = re.search(r",\s*\Z", text[:start])
        start = before.start() if before is not None else start
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    if line_end >= 0 and not text[line_start:start].strip() and not text[end:line_end].strip():
        start, end = line_start, line_end + 1
    return Edit(start, end, "", sure=sure)


def declared_option(options: Mapping[str, Option], key: str) -> Option | None:
    """The option of this key: by its name, by that of its kind, or by its prefix."""
    option = options.get(key) or options.get(generic_key(key))
    if option is not None:
        return option
    starts = (each for each in options.values() if each.key.endswith("*"))
    fits = [each for each in starts if key.startswith(each.key[:-1])]
    return max(fits, key=lambda each: len(each.key), default=None)


def generic_key(key: str) -> str:
    """The key in the table of options.

    `fields.user_id.min` is `fields.#.min`; `key.json.ignore-parse-errors` is
    `json.ignore-parse-errors`, as keys and values share the options of a format.
    """
    match = FORMAT_OPTION.match(key)
    if match is not None:
        return key.removeprefix(match["role"] or "")
    parts = key.split(".")
    if parts[0] == "fields" and len(parts) >= 3:
        return f"fields.#.{parts[-1]}"
    return key


def check_option(script: Script, node: OptionNode, option: Option) -> None:
    if option.instead and not option.choices and len(node.value) <= 4096:
        return
    _check_references(script, node, option)
    if option.type is OptionType.NUMBER:
        _check_number(script, node, option)
    elif option.type is OptionType.DURATION:
        _check_duration(script, node, option)
    elif option.type is OptionType.MEMORY:
        _check_memory(script, node, option)
    elif option.type is OptionType.FLAG:
        _check_choice(script, node, ("true", "false"), node.value.lower())
    elif option.type is OptionType.CHOICE:
        _check_choice(script, node, option.choices, node.value, option.otherwise)
    elif re.fullmatch(option.pattern, node.value) is None:
        shown = "" if option.credential else f' is "{node.value[:100]}"'
        raise script.error(
            node.value_at,
            f'option "{node.key}"{shown}, expected {option.form}',
            hint=option.otherwise or f"Give {option.form}.",
        )


def _check_references(script: Script, node: OptionNode, option: Option) -> None:
    if "${" not in node.value or (option.reference and SECRET.fullmatch(node.value)):
        return
    hint = "Write the value itself; ${secret:name} is for user names and passwords."
    if option.reference:
        hint = "Write ${secret:name} and nothing around it."
    raise script.error(
        node.value_at, f'option "{node.key}" contains a ${{…}} that is not allowed', hint=hint
    )


def _check_number(script: Script, node: OptionNode, option: Option) -> None:
    accepted = f"a whole number from {option.lowest} to {option.highest}"
    if re.fullmatch(r"\d{1,19}", node.value, re.ASCII) and (
        option.lowest <= int(node.value) <= option.highest
    ):
        return
    raise script.error(
        node.value_at,
        f'option "{node.key}" is "{node.value[:100]}", expected {accepted}',
        hint=f"Give {accepted}.",
    )


def _check_duration(script: Script, node: OptionNode, option: Option) -> None:
    milliseconds = duration_ms(node.value)
    if milliseconds is not None and option.lowest <= milliseconds <= option.highest:
        return
    raise script.error(
        node.value_at,
        f'option "{node.key}" is "{node.value[:100]}", expected {option.form}',
        hint=f"Give {option.form}.",
    )


def _check_memory(script: Script, node: OptionNode, option: Option) -> None:
    size = memory_bytes(node.value)
    if size is not None and option.lowest <= size <= option.highest:
        return
    raise script.error(
        node.value_at,
        f'option "{node.key}" is "{node.value[:100]}", expected a size from 1 kb to 1 tb',
        hint="Give a number and a unit, such as 64 mb.",
    )


def _check_choice(
    script: Script, node: OptionNode, choices: tuple[str, ...], value: str, otherwise: str = ""
) -> None:
    if value in choices:
        return
    known = ", ".join(choices)
    hint = _EXPLAINED_VALUES.get(node.value) or suggestion(
        node.value, choices, otherwise or f"Supported values are {known}."
    )
    raise script.error(
        node.value_at,
        f'option "{node.key}" is "{node.value[:100]}", expected {known}',
        hint=hint,
    )


INLINE_PREFIX = "inline-"
"""What the names of credentials begin with that a script has itself."""


@dataclass(frozen=True, slots=True)
class InlineSecret:
    """A credential in the script; its reference is `${secret:name}`."""

    name: str
    value: str
    node: OptionNode

    @property
    def reference(self) -> str:
        return f"${{secret:{self.name}}}"


class InlineSecrets:
    """All credentials of a script, also of dropped or unused tables.

    One literal is one secret, even if several tables copy it by LIKE; equal values of one option
    are too.
    """

    def __init__(self, *, keep_values: bool) -> None:
        self._keep_values = keep_values
        self._by_position: dict[int, InlineSecret] = {}
        self._hidden: dict[int, OptionNode] = {}

    @property
    def first(self) -> InlineSecret | None:
        return next(iter(self._by_position.values()), None)

    def take(self, table: str, values: OptionValues) -> tuple[InlineSecret, ...]:
        """The credentials in a table's options; references replace them unless values are kept."""
        secrets: list[InlineSecret] = []
        for key, node in values.ignored.items():
            if not values.option(key).choices and may_be_credential(key, node.value):
                self.hide(node)
        for key, node in values.nodes.items():
            option = values.option(key)
            if not option.credential or SECRET.fullmatch(node.value):
                continue
            if node.value_at not in self._by_position:
                known = self._by_position.values()
                alike = (s.name for s in known if (s.node.key, s.value) == (node.key, node.value))
                name = next(alike, None) or self._new_name(table, node)
                self._by_position[node.value_at] = InlineSecret(name, node.value, node)
            secret = self._by_position[node.value_at]
            secrets.append(secret)
            if not self._keep_values:
                values.nodes[key] = replace(node, value=secret.reference)
        return tuple(secrets)

    def hide(self, node: OptionNode) -> None:
        """A value that nothing uses and that may be a credential is not stored."""
        self._hidden[node.value_at] = node

    def _new_name(self, table: str, node: OptionNode) -> str:
        plain = f"{INLINE_PREFIX}{table}-{node.key.rpartition('.')[2]}"
        taken = {secret.name for secret in self._by_position.values()}
        name, number = plain, 2
        while name in taken:
            name, number = f"{plain}-{number}", number + 1
        return name

    def shown(self, node: OptionNode) -> str:
        """The value of an option; a reference for a credential, asterisks for what may be one."""
        if node.value_at in self._by_position:
            return self._by_position[node.value_at].reference
        return "***" if node.value_at in self._hidden else node.value

    def redacted(self, script: Script, start: int = 0, end: int | None = None) -> str:
        """The script, or a part of it, as `shown`, and without credentials in its comments."""
        values = [secret.value for secret in self._by_position.values()]
        values += [node.value for node in self._hidden.values()]
        text = masked_comments(script.text, values)[:end]
        nodes = self._hidden | {at: each.node for at, each in self._by_position.items()}
        for at in sorted(nodes, reverse=True):
            node = nodes[at]
            if start <= at < len(text):
                place, before, behind = node.inside or (at, "", "")
                text = f"{text[:place]}{before}'{self.shown(node)}'{behind}{text[node.end :]}"
        return text[start:]


class Home(StrEnum):
    """Where the rows of a connector's tables are stored."""

    DATABASE = "database"
    DELTA = "table"
    FILES = "files"
    RECORDS = "records"
    NONE = ""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """A table in each role; None for a role that its connector does not support.

    `several_topics` is the option that names several topics. Without a startup mode the planner
    warns.
    """

    stream: KafkaSource | DatagenSource | TableStream | None = None
    dimension: DimensionSource | None = None
    sink: Sink | None = None
    has_startup_mode: bool = True
    several_topics: str | None = None


@dataclass(frozen=True, slots=True)
class Connector:
    """What SQL knows of a connector; `service.sql.catalog.connectors` registers it.

    `endpoints` takes checked options, physical columns and primary key.
    """

    name: str
    options: tuple[Option, ...]
    endpoints: Callable[[OptionValues, tuple[Field, ...], tuple[str, ...]], Endpoints]
    home: Home = Home.NONE
    needs_primary_key: bool = False
