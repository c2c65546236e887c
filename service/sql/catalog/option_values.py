"""A table's WITH options, checked against its connector's list of options.

Unknown keys, missing keys and values out of range are refused at the key's position. A value may
name a secret as `${secret:name}` if its option allows it; any other `${…}` is refused.
"""

import re
from dataclasses import dataclass, replace

from joins.plan.errors import nearest
from joins.plan.formats import KafkaFormat
from service.sql.catalog.kafka_options import PROPERTY, REFUSED
from service.sql.catalog.option import Option, OptionType, TableRole
from service.sql.catalog.options import CONNECTORS
from service.sql.grammar.syntax import CreateTable, OptionNode
from service.sql.text.masking import masked_comments
from service.sql.text.script import Script, SqlError, suggestion

_UNITS_MS = {
    **{"ms": 1, "s": 1_000, "sec": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000},
    "d": 86_400_000,
}
FORMAT_OPTION = re.compile(
    rf"(?P<role>(?:key|value)\.)?(?P<format>{'|'.join(map(re.escape, KafkaFormat))})\."
)
"""What an option of a format begins with."""
SECRET = re.compile(r"\$\{secret:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\}")
_EXPLAINED = (
    (r".*\bjson\.map-null-key\..*", "Remove it: no key of a MAP is NULL here."),
    (r".*\bavro\.codec", "Remove it: it is of files, records have no codec."),
    (
        r".*\bavro-confluent\.bearer-auth\..*",
        "Log in by 'basic-auth.user-info', or by a certificate of ours.",
    ),
    (
        r".*\bavro-confluent\.ssl\.(?:truststore|keystore)\.(?:location|password|type)",
        "Give PEM texts as secrets, by the options ssl.truststore.certificates, "
        "ssl.keystore.certificate.chain and ssl.keystore.key.",
    ),
    (r".*\bavro-confluent\.properties\..*", "Remove it: it is of Java's client."),
    (r".*\bjson\.decode\.json-parser\.enabled", "Remove it: the reader is our own."),
    *((re.escape(PROPERTY) + f"(?:{pattern})", hint) for pattern, hint in REFUSED),
    (r"(?:sink|scan)\.parallelism", "Remove it: the number of partitions decides."),
    (r"server-time-zone", "Remove it: TIMESTAMP is read as UTC and DATETIME as it is stored."),
    (
        r"source\.monitor-interval",
        "Remove it: files are read once; a table that goes on growing is joined by delta.",
    ),
    (r"topic-pattern", "Name one topic with 'topic'."),
    (
        r"properties\.partition\.discovery\.interval\.ms",
        "Remove it: new partitions are found before each batch, and read from their beginning.",
    ),
    (
        r"scan\.watermark\.use-processing-time",
        "Remove it: it is of kafka. A dimension without WATERMARK FOR is in processing time once "
        "it is copied.",
    ),
)
_INSTEAD = (
    (
        r"jdbc|tidb-cdc|oceanbase-cdc|vitess-cdc|polardb.*",
        "A table of MySQL or MariaDB is joined by 'mysql-cdc', with 'hostname', 'username', "
        "'password', 'database-name' and 'table-name'; another database's by a topic of Debezium, "
        "'kafka' with 'format' = 'debezium-json'. Rows are written to 'kafka' or 'delta'.",
    ),
    (
        r"[a-z0-9]+-cdc",
        "Let Debezium write the table into a topic, and declare 'kafka' with 'format' = "
        "'debezium-json' and a PRIMARY KEY.",
    ),
    (r"faker|.*-faker", "Use 'datagen', which takes 'fields.#.expression' as it is."),
    (
        r"socket|pulsar|kinesis.*|rabbitmq|pubsub.*|sls|datahub|mqtt|nats|rocketmq|filelog",
        "A stream comes from 'kafka' or 'datagen': let Kafka Connect bring the records there.",
    ),
    (
        r"elasticsearch.*|opensearch.*|hbase.*|redis.*|mongodb|clickhouse|doris|starrocks|firehose"
        r"|dynamodb|influxdb|http.*|bigquery|snowflake|hive|iceberg|paimon|hudi|cassandra|kudu",
        "Write to 'delta', or to 'kafka', from where Kafka Connect brings rows elsewhere.",
    ),
)
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
    """The checked options of one table; keys with `#` appear with the column's name."""

    script: Script
    nodes: dict[str, OptionNode]
    options: dict[str, Option]
    at: int

    def text(self, key: str) -> str | None:
        node = self.nodes.get(key)
        return node.value if node is not None else self.options[generic_key(key)].default

    def required(self, key: str) -> str:
        """The value of an option that is present or has a default."""
        value = self.text(key)
        if value is None:
            raise self.error(
                key, f'option "{key}" is missing', hint=f"Add '{key}' = '…' to WITH (…)."
            )
        return value

    def is_set(self, key: str) -> bool:
        return key in self.nodes

    def without_effect(self) -> dict[TableRole, tuple[str, ...]]:
        roles = {key: self.options[generic_key(key)].roles for key in self.nodes}
        return {
            role: tuple(key for key in self.nodes if role not in roles[key]) for role in TableRole
        }

    def number(self, key: str) -> int | None:
        value = self.text(key)
        return None if value is None else int(value)

    def milliseconds(self, key: str) -> int:
        return duration_ms(self.required(key)) or 0

    def memory(self, key: str) -> int | None:
        """The bytes of a MEMORY option, or None when unset."""
        value = self.text(key)
        return None if value is None else memory_bytes(value)

    def flag(self, key: str) -> bool:
        return (self.text(key) or "false").lower() == "true"

    def require_beside(self, key: str, other: str) -> None:
        if self.text(key) is not None and self.text(other) is None:
            raise self.error(
                key, f'option "{key}" needs "{other}"', hint=f"Add '{other}' to WITH (…)."
            )

    def require_pair(self, one: str, other: str) -> None:
        self.require_beside(one, other)
        self.require_beside(other, one)

    def error(self, key: str, message: str, *, hint: str) -> SqlError:
        node = self.nodes.get(key)
        return self.script.error(self.at if node is None else node.at, message, hint=hint)


def read_options(script: Script, table: CreateTable) -> tuple[str, OptionValues]:
    """The table's connector and its checked options.

    Raises:
        SqlError: the connector or an option is unknown, missing, given twice or out of range.
    """
    nodes = _by_key(script, table)
    connector = _connector(script, table, nodes)
    options = {option.key: option for option in CONNECTORS[connector]}
    for key, node in nodes.items():
        option = options.get(generic_key(key))
        if option is None:
            raise _unknown(script, node, connector, options)
        _check(script, node, option)
    values = OptionValues(script, nodes, options, table.name.at)
    for option in options.values():
        if option.required:
            values.required(option.key)
    return connector, values


def _by_key(script: Script, table: CreateTable) -> dict[str, OptionNode]:
    nodes: dict[str, OptionNode] = {}
    for node in table.options:
        if node.key in nodes:
            raise script.error(
                node.at, f'option "{node.key}" is given twice', hint="Remove one of the two."
            )
        nodes[node.key] = node
    return nodes


def _of_flink(connector: str) -> str | None:
    return next((text for name, text in _INSTEAD if re.fullmatch(name, connector)), None)


def _connector(script: Script, table: CreateTable, nodes: dict[str, OptionNode]) -> str:
    names = ", ".join(CONNECTORS)
    node = nodes.pop("connector", None)
    if node is None:
        raise script.error(
            table.name.at,
            f'table "{table.name.text}" has no option "connector"',
            hint=f"Add 'connector' = '…'; connectors are {names}.",
        )
    if node.value not in CONNECTORS:
        raise script.error(
            node.value_at,
            f'unknown connector "{node.value}"',
            hint=_of_flink(node.value)
            or suggestion(node.value, CONNECTORS, f"Connectors are {names}."),
        )
    return node.value


def _unknown(
    script: Script, node: OptionNode, connector: str, options: dict[str, Option]
) -> SqlError:
    prefix = PROPERTY if node.key.startswith(PROPERTY) else ""
    of_kind = [key for key in options if key.startswith(PROPERTY) == bool(prefix)]
    otherwise = f"Options of {connector} are " + (", ".join(of_kind) or "none") + "."
    column = node.key.removeprefix("fields.").rpartition(".")[0]
    known = (key.replace("#", column) for key in of_kind if column or "#" not in key)
    close = nearest(node.key.removeprefix(prefix), (k.removeprefix(prefix) for k in known))
    hint = otherwise if close is None else f'Did you mean "{prefix}{close}"?'
    for pattern, explanation in _EXPLAINED:
        if re.fullmatch(pattern, node.key):
            hint = explanation
            break
    return script.error(node.at, f'connector "{connector}" has no option "{node.key}"', hint=hint)


def memory_bytes(text: str) -> int | None:
    """The bytes of a size as Flink writes it, such as `64 mb` or `1g`; None if it is none."""
    match = re.fullmatch(r"(\d{1,15})\s*([a-z]*)", text.strip().lower(), re.ASCII)
    if match is None or match[2] not in _MEMORY_UNITS:
        return None
    return int(match[1]) * _MEMORY_UNITS[match[2]]


def generic_key(key: str) -> str:
    """The key in the table of options.

    `fields.user_id.min` is `fields.#.min`; an option of a format is there once for keys and values:
    `key.json.ignore-parse-errors` is `json.ignore-parse-errors`.
    """
    match = FORMAT_OPTION.match(key)
    if match is not None:
        return key.removeprefix(match["role"] or "")
    parts = key.split(".")
    if parts[0] == "fields" and len(parts) >= 3:
        return f"fields.#.{parts[-1]}"
    return key


def _check(script: Script, node: OptionNode, option: Option) -> None:
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
        _check_choice(script, node, option.choices, node.value)
    elif re.fullmatch(option.pattern, node.value) is None:
        shown = "" if option.credential else f' is "{node.value[:100]}"'
        raise script.error(
            node.value_at,
            f'option "{node.key}"{shown}, expected {option.form}',
            hint=f"Give {option.form}.",
        )


def _check_references(script: Script, node: OptionNode, option: Option) -> None:
    if "${" not in node.value or (option.reference and SECRET.fullmatch(node.value)):
        return
    hint = "Write the value itself; ${secret:name} is for user names and passwords."
    if option.reference:
        hint = "Write ${secret:name} and nothing around it."
    raise script.error(
        node.value_at, f'option "{node.key}" has a ${{…}} that is not allowed', hint=hint
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


def duration_ms(text: str) -> int | None:
    """Milliseconds of a duration such as `500 ms` or `2 s`, None if it is not one."""
    match = re.fullmatch(r"(\d{1,9})\s*([a-z]+)", text.strip(), re.ASCII)
    if match is None or match[2] not in _UNITS_MS:
        return None
    return int(match[1]) * _UNITS_MS[match[2]]


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


def _check_choice(script: Script, node: OptionNode, choices: tuple[str, ...], value: str) -> None:
    if value in choices:
        return
    known = ", ".join(choices)
    hint = _EXPLAINED_VALUES.get(node.value) or suggestion(
        node.value, choices, f"Supported values are {known}."
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
    """A credential in the script.

    Attributes:
        name: of the reference `${secret:name}`.
    """

    name: str
    value: str
    node: OptionNode

    @property
    def reference(self) -> str:
        return f"${{secret:{self.name}}}"


class InlineSecrets:
    """All credentials of a script, also of tables that are dropped or not used.

    One literal is one secret, however many tables have it by LIKE; so are equal ones of one option.
    """

    def __init__(self, *, keep_values: bool) -> None:
        self._keep_values = keep_values
        self._by_position: dict[int, InlineSecret] = {}

    @property
    def first(self) -> InlineSecret | None:
        return next(iter(self._by_position.values()), None)

    def take(self, table: str, values: OptionValues) -> tuple[InlineSecret, ...]:
        """The credentials in a table's options; references replace them unless values are kept."""
        secrets: list[InlineSecret] = []
        for key, node in values.nodes.items():
            option = values.options[generic_key(key)]
            if not option.credential or SECRET.fullmatch(node.value):
                continue
            secret = self._secret(table, node)
            secrets.append(secret)
            if not self._keep_values:
                values.nodes[key] = replace(node, value=secret.reference)
        return tuple(secrets)

    def _secret(self, table: str, node: OptionNode) -> InlineSecret:
        if node.value_at not in self._by_position:
            known = self._by_position.values()
            alike = (s.name for s in known if (s.node.key, s.value) == (node.key, node.value))
            name = next(alike, None) or self._new_name(table, node)
            self._by_position[node.value_at] = InlineSecret(name, node.value, node)
        return self._by_position[node.value_at]

    def _new_name(self, table: str, node: OptionNode) -> str:
        plain = f"{INLINE_PREFIX}{table}-{node.key.rpartition('.')[2]}"
        taken = {secret.name for secret in self._by_position.values()}
        name, number = plain, 2
        while name in taken:
            name, number = f"{plain}-{number}", number + 1
        return name

    def redacted(self, script: Script) -> str:
        """The script with references in place of the credentials, and none in its comments."""
        values = [secret.value for secret in self._by_position.values()]
        text = masked_comments(script.text, values)
        for at in sorted(self._by_position, reverse=True):
            secret = self._by_position[at]
            text = f"{text[:at]}'{secret.reference}'{text[secret.node.end :]}"
        return text
