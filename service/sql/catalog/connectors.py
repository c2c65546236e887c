"""All connectors, and the check of a table's WITH options against its connector."""

import re
from collections.abc import Collection, Mapping

from joins.plan.errors import NameHint, nearest
from joins.plan.plan import BlackholeSink, PrintSink
from service.sql.catalog.datagen_connector import DATAGEN, FAKER
from service.sql.catalog.file_connectors import DELTA, FILESYSTEM
from service.sql.catalog.jdbc_connector import JDBC, JDBC_URLS, OTHER_DATABASE
from service.sql.catalog.kafka_connector import KAFKA, UPSERT_KAFKA
from service.sql.catalog.kafka_options import PROPERTY, REFUSED
from service.sql.catalog.mysql_connector import MYSQL, MYSQL_CDC
from service.sql.catalog.option import OLD_TYPE, Option, TableRole, ignored
from service.sql.catalog.option_values import (
    Connector,
    Endpoints,
    OptionValues,
    check_option,
    declared_option,
    example,
    literal,
    removed,
)
from service.sql.catalog.stores import TABLE_PATH
from service.sql.grammar.syntax import CreateTable, OptionNode
from service.sql.text.script import Edit, Script, SqlError

_EXPLAINED = (
    (
        r".*\bavro-confluent\.bearer-auth\..*",
        "Log in by 'basic-auth.user-info', or by a certificate of ours.",
    ),
    (
        r".*\bavro-confluent\.ssl\.(?:truststore|keystore)\.(?:location|password|type)",
        "Give PEM texts as secrets, by the options ssl.truststore.certificates, "
        "ssl.keystore.certificate.chain and ssl.keystore.key.",
    ),
    *((re.escape(PROPERTY) + f"(?:{pattern})", hint) for pattern, hint in REFUSED),
    (
        r"source\.monitor-interval",
        "Remove it: files are read once; use delta for a table that grows.",
    ),
    (r"topic-pattern", "Name one topic with 'topic'."),
    (
        r"(?:canal|maxwell|ogg)-json\..*",
        "Remove it: it belongs to a format that is not read; 'debezium-json' is.",
    ),
    (
        r"debezium\..*",
        "Remove it: it may change which rows are read, or what they hold; the service reads the "
        "table without Debezium.",
    ),
    (
        r"scan\.watermark\.use-processing-time",
        "Remove it: it is an option of kafka. A dimension without WATERMARK FOR is in processing "
        "time once "
        "it is copied.",
    ),
)
_RENAMED = {("delta", "table-path"): "path"}
"""Options that the connector of this name has in Flink, and their names here."""
_HYBRID = "hybrid"
_LIKE, _TYPO = 0.6, 0.85  # how like a name is; that of another system must be very like
_INSTEAD = (
    (
        _HYBRID,
        "Declare the topic ('upsert-kafka', or 'kafka' with 'format' = 'debezium-json'), and the "
        "files before it by 'history.connector' = 'filesystem', 'history.path' and "
        "'history.format'.",
    ),
    (
        r"tidb-cdc|oceanbase-cdc|vitess-cdc|polardb.*",
        "A table of MySQL or MariaDB is joined by 'mysql-cdc', with 'hostname', 'username', "
        "'password', 'database-name' and 'table-name'; another database's by a topic of Debezium, "
        "'kafka' with 'format' = 'debezium-json'. Rows are written to 'kafka' or 'delta'.",
    ),
    (
        r"[a-z0-9]+-cdc",
        "Let Debezium write the table into a topic, and declare 'kafka' with 'format' = "
        "'debezium-json' and a PRIMARY KEY.",
    ),
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

_FORMATS = ("format", "value.format", "key.format")
_OF_CHANGES = re.compile(r".*-cdc|mysql|jdbc")
_OF_OTHER_TOOLS = re.compile(r"(?:canal|maxwell|ogg)-json")
_CHANGES_OF_OTHERS = "Let Debezium write the table into a topic, in format 'debezium-json'."
_BROKERS = "properties.bootstrap.servers"
_OWN_CATALOG = "default_catalog"
_ROW_FORMATS = ("json", "csv", "raw", "avro")
_ELSEWHERE = "Its rows are elsewhere: let Kafka Connect bring them from there or to there."
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


def role_of(script: Script, table: CreateTable) -> TableRole:
    """What the queries of the script do with the table, by their words."""
    text = _COMMENT.sub(" ", script.text)
    if re.match(r"\s*AS\b", _COMMENT.sub(" ", script.text[table.options_end :]), re.IGNORECASE):
        return TableRole.SINK  # CREATE TABLE … AS fills it
    name = rf"(?:[`\w]+\s*\.\s*)*`?{re.escape(table.name.text)}`?(?![\w`])"
    if re.search(rf"(?i:\bINTO)\s+{name}", text):
        return TableRole.SINK
    joined = (
        rf"\b{name}\s*(?:/\*.*?\*/\s*)?(?i:FOR\s+SYSTEM_TIME\b)|(?i:\bSNAPSHOT)\s*\([^)]*\b{name}"
    )
    if re.search(joined, text, re.DOTALL):
        return TableRole.DIMENSION
    return TableRole.STREAM


def swapped(script: Script, table: CreateTable, *, sure: bool = True) -> Edit | None:
    """The table with a connector that is here, in the same role; None if it has no own WITH.

    A change that is `sure` is only made of a table whose rows are known to be elsewhere.
    """
    own = [node for node in table.options if table.options_at < node.at < table.options_end]
    is_bare = not table.options_at and table.like is None and not table.options
    names_one = any(node.key in ("connector", OLD_TYPE) for node in own)
    is_known = is_bare or names_one or _is_of_a_catalog(script, table) or not sure
    if not is_known or not (is_bare or own):
        return None
    role = role_of(script, table)
    options = _options(script, table, role)
    listed = ",\n".join(f"  {literal(key)} = {literal(text)}" for key, text in options)
    clause = f"(\n{listed}\n)"
    fill = "Fill in its address. " if role is not TableRole.SINK else ""
    start = table.options_end if is_bare else table.options_at
    text = f" WITH {clause}" if is_bare else clause
    return Edit(start, table.options_end, text, note=fill + _ELSEWHERE, sure=sure)


_USE_CATALOG = re.compile(r"\bUSE\s+CATALOG\s+(?:`([^`]+)`|(\w+))", re.IGNORECASE)


def _is_of_a_catalog(script: Script, table: CreateTable) -> bool:
    """True for a table whose catalog gives it a connector: another one than Flink's own."""
    if len(table.name.qualifier) > 1:
        return table.name.qualifier[0] != _OWN_CATALOG
    used = _USE_CATALOG.findall(_COMMENT.sub(" ", script.text[: table.at]))
    return bool(used) and "".join(used[-1]) != _OWN_CATALOG


def _with_a_connector(script: Script, table: CreateTable) -> Edit | None:
    """A guess: the connector whose options the table has."""
    own = [node for node in table.options if table.options_at < node.at < table.options_end]

    def fitting(connector: Connector) -> int:
        known = {option.key: option for option in connector.options if not option.instead}
        return sum(declared_option(known, node.key) is not None for node in own)

    best = max(CONNECTORS.values(), key=fitting)
    if not own or not fitting(best):
        return swapped(script, table, sure=False)
    return Edit(own[0].at, own[0].at, f"'connector' = {literal(best.name)}, ", sure=False)


def _options(script: Script, table: CreateTable, role: TableRole) -> list[tuple[str, str]]:
    name = re.sub(r"[^A-Za-z0-9._-]", "_", table.name.text)
    if role is TableRole.SINK:
        own_path = next((node.value for node in table.options if node.key == "path"), name)
        is_usable = re.fullmatch(TABLE_PATH, own_path) is not None
        return [("connector", "delta"), ("path", own_path if is_usable else name)]
    brokers = re.search(rf"'{re.escape(_BROKERS)}'\s*=\s*'([^']+)'", script.text)
    topic = [
        ("connector", "kafka"),
        ("topic", name),
        (_BROKERS, brokers[1] if brokers else "localhost:9092"),
    ]
    if role is TableRole.DIMENSION:
        form = "debezium-json" if table.primary_key else "json"
        return [*topic, ("format", form)]
    own = {node.key: node.value for node in table.options}
    form = own["format"] if own.get("format") in _ROW_FORMATS else "json"
    has_changes = _OF_CHANGES.fullmatch(own.get("connector", ""))
    if table.primary_key and (has_changes or _OF_OTHER_TOOLS.fullmatch(own.get("format", ""))):
        form = "debezium-json"
    return [*topic, ("scan.startup.mode", "earliest-offset"), ("format", form)]


_PRINT = Connector(
    "print",
    (Option("print-identifier", "Put in front of each row.", default=""), *ignored("print")),
    lambda values, _, __: Endpoints(sink=PrintSink(values.required("print-identifier"))),
)
_BLACKHOLE = Connector("blackhole", (), lambda _, __, ___: Endpoints(sink=BlackholeSink()))
CONNECTORS: dict[str, Connector] = {
    connector.name: connector
    for connector in (
        MYSQL_CDC,
        MYSQL,
        JDBC,
        KAFKA,
        UPSERT_KAFKA,
        DELTA,
        FILESYSTEM,
        DATAGEN,
        FAKER,
        _PRINT,
        _BLACKHOLE,
    )
}


MOST_FAULTS = 100
"""Faults of a table that one refusal has; further ones follow when these are corrected."""


def read_options(script: Script, table: CreateTable) -> tuple[Connector, OptionValues]:
    """The checked options; raises the first fault, which has the others in `more`."""
    nodes = _by_key(script, table)
    connector = _connector(script, table, nodes)
    options = {option.key: option for option in connector.options}
    values = OptionValues(script, nodes, options, table.name.at, table.name.text)
    faults: list[SqlError] = []
    for key, node in list(nodes.items()):
        try:
            _check(values, connector, key, node)
        except SqlError as fault:
            faults.append(fault)
            del nodes[key]
        if len(faults) == MOST_FAULTS:
            break
    for option in options.values():
        if option.required and option.key not in nodes and option.default is None:
            refused = any(node.key == option.key for node in table.options)
            if not refused:
                faults.append(_missing(values, option.key))
    if faults:
        first = faults[0]
        first.more = tuple(faults[1:])
        raise first
    return connector, values


def _check(values: OptionValues, connector: Connector, key: str, node: OptionNode) -> None:
    option = declared_option(values.options, key)
    if option is None or (option.key == f"{PROPERTY}*" and _is_misspelt(values, key)):
        raise _unknown(values.script, node, connector, values.options, values.nodes)
    try:
        check_option(values.script, node, option)
    except SqlError as fault:
        if option.key in _FORMATS and _OF_OTHER_TOOLS.fullmatch(node.value):
            fault.hint = _CHANGES_OF_OTHERS
            fault.edit = Edit(node.value_at, node.end, "'debezium-json'", sure=False)
        elif fault.edit is None and (option.required or option.key in _FORMATS):
            value = literal(example(key, option, values.table))
            fault.edit = Edit(node.value_at, node.end, value, sure=False)
        elif fault.edit is None:
            fault.edit = removed(values.script, node, sure=False)
        raise
    if option.instead:
        values.ignore(key, option.instead)


def _is_misspelt(values: OptionValues, key: str) -> bool:
    """True for a property of Kafka's client that is refused, or that is nearly one in use."""
    name = key.removeprefix(PROPERTY)
    if any(re.fullmatch(pattern, name) for pattern, _ in REFUSED):
        return True
    used = (k.removeprefix(PROPERTY) for k, o in values.options.items() if not o.instead)
    return nearest(name, used) is not None


def _missing(values: OptionValues, key: str) -> SqlError:
    try:
        values.required(key)
    except SqlError as fault:
        return fault
    raise AssertionError(key)


def _by_key(script: Script, table: CreateTable) -> dict[str, OptionNode]:
    nodes: dict[str, OptionNode] = {}
    for node in table.options:
        if node.key in nodes:
            raise script.error(
                node.at,
                f'option "{node.key}" is given twice',
                hint="Remove one of the two.",
                edit=removed(script, node, sure=node.value == nodes[node.key].value),
            )
        nodes[node.key] = node
    return nodes


def _connector(script: Script, table: CreateTable, nodes: dict[str, OptionNode]) -> Connector:
    names = ", ".join(CONNECTORS)
    node = nodes.pop("connector", None)
    if node is None:
        raise script.error(
            table.name.at,
            f'table "{table.name.text}" has no option "connector"',
            hint=f"Add 'connector' = '…'; connectors are {names}.",
            edit=swapped(script, table) or _with_a_connector(script, table),
        )
    if node.value not in CONNECTORS:
        instead = next((hint for name, hint in _INSTEAD if re.fullmatch(name, node.value)), None)
        meant = nearest(node.value, CONNECTORS, _TYPO if instead else _LIKE)
        otherwise = instead or f"Connectors are {names}."
        raise script.error(
            node.value_at,
            f'unknown connector "{node.value}"',
            hint=otherwise if meant is None else NameHint(meant),
            edit=None if meant or node.value == _HYBRID else swapped(script, table),
        )
    if node.value == JDBC.name:
        _check_jdbc(script, table, node, nodes)
    elif node.value == FILESYSTEM.name and role_of(script, table) is TableRole.SINK:
        raise script.error(
            node.value_at,
            f'table "{table.name.text}" is filesystem, which cannot be written',
            hint="Write to 'delta', whose files are Parquet, or to 'kafka'.",
            edit=swapped(script, table),
        )
    return CONNECTORS[node.value]


def _check_jdbc(
    script: Script, table: CreateTable, node: OptionNode, nodes: Mapping[str, OptionNode]
) -> None:
    """Refuse `jdbc` for a sink, and for other databases."""
    is_sink = role_of(script, table) is TableRole.SINK
    url = nodes.get("url")
    if not is_sink and (url is None or url.value.startswith(JDBC_URLS)):
        return
    raise script.error(
        node.value_at if is_sink or url is None else url.value_at,
        f'table "{table.name.text}" is written by jdbc'
        if is_sink
        else f'table "{table.name.text}" is not of MySQL, MariaDB or PostgreSQL',
        hint="Write to 'delta', or to 'kafka', from where Kafka Connect brings rows elsewhere."
        if is_sink
        else OTHER_DATABASE,
        edit=swapped(script, table),
    )


def _unknown(
    script: Script,
    node: OptionNode,
    connector: Connector,
    options: Mapping[str, Option],
    named: Collection[str],
) -> SqlError:
    prefix = PROPERTY if node.key.startswith(PROPERTY) else ""
    used = [key for key, option in options.items() if not option.instead]
    of_kind = [key for key in used if key.startswith(PROPERTY) == bool(prefix)]
    hint = f"Options of {connector.name} are " + (", ".join(of_kind) or "none") + "."
    column = node.key.removeprefix("fields.").rpartition(".")[0]
    known = (key.replace("#", column) for key in of_kind if column or "#" not in key)
    close = nearest(node.key.removeprefix(prefix), (k.removeprefix(prefix) for k in known))
    edit = removed(script, node, sure=False)
    if close is not None:
        hint = NameHint(prefix + close)
    if close is not None and prefix + close not in named:
        end = script.text.index("'", node.at + 1) + 1
        edit = Edit(node.at, end, literal(prefix + close), sure=False)
    later = _RENAMED.get((connector.name, node.key))
    if later is not None and later not in named:
        hint, end = f'Write "{later}".', script.text.index("'", node.at + 1) + 1
        edit = Edit(node.at, end, literal(later))
    for pattern, explanation in _EXPLAINED:
        if re.fullmatch(pattern, node.key):
            hint = explanation
            edit = removed(script, node, sure=False)
            break
    return script.error(
        node.at, f'connector "{connector.name}" has no option "{node.key}"', hint=hint, edit=edit
    )
