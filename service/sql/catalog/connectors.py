"""All connectors, and the check of a table's WITH options against its connector."""

import re

from joins.plan.errors import nearest
from joins.plan.plan import BlackholeSink, PrintSink
from service.sql.catalog.connector import Connector, Endpoints
from service.sql.catalog.datagen_connector import DATAGEN
from service.sql.catalog.file_connectors import DELTA, FILESYSTEM
from service.sql.catalog.kafka_connector import KAFKA, UPSERT_KAFKA
from service.sql.catalog.kafka_options import PROPERTY, REFUSED
from service.sql.catalog.mysql_connector import MYSQL_CDC
from service.sql.catalog.option import Option
from service.sql.catalog.option_values import OptionValues, check_option, generic_key
from service.sql.grammar.syntax import CreateTable, OptionNode
from service.sql.text.script import Script, SqlError, suggestion

_EXPLAINED = (
    (r".*\bjson\.map-null-key\..*", "Remove it: keys of a MAP are never NULL."),
    (r".*\bavro\.codec", "Remove it: records have no codec."),
    (
        r".*\bavro-confluent\.bearer-auth\..*",
        "Log in by 'basic-auth.user-info', or by a certificate of ours.",
    ),
    (
        r".*\bavro-confluent\.ssl\.(?:truststore|keystore)\.(?:location|password|type)",
        "Give PEM texts as secrets, by the options ssl.truststore.certificates, "
        "ssl.keystore.certificate.chain and ssl.keystore.key.",
    ),
    (r".*\bavro-confluent\.properties\..*", "Remove it: it configures the Java client."),
    (r".*\bjson\.decode\.json-parser\.enabled", "Remove it: it configures Flink's JSON parser."),
    *((re.escape(PROPERTY) + f"(?:{pattern})", hint) for pattern, hint in REFUSED),
    (r"(?:sink|scan)\.parallelism", "Remove it: the number of partitions decides."),
    (r"server-time-zone", "Remove it: TIMESTAMP is read as UTC and DATETIME as it is stored."),
    (
        r"source\.monitor-interval",
        "Remove it: files are read once; use delta for a table that grows.",
    ),
    (r"topic-pattern", "Name one topic with 'topic'."),
    (
        r"properties\.partition\.discovery\.interval\.ms",
        "Remove it: new partitions are found before each batch, and read from their beginning.",
    ),
    (
        r"scan\.watermark\.use-processing-time",
        "Remove it: it is an option of kafka. A dimension without WATERMARK FOR is in processing "
        "time once "
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

_PRINT = Connector(
    "print",
    (Option("print-identifier", "Put in front of each row.", default=""),),
    lambda values, _, __: Endpoints(sink=PrintSink(values.required("print-identifier"))),
)
_BLACKHOLE = Connector("blackhole", (), lambda _, __, ___: Endpoints(sink=BlackholeSink()))
CONNECTORS: dict[str, Connector] = {
    connector.name: connector
    for connector in (
        MYSQL_CDC,
        KAFKA,
        UPSERT_KAFKA,
        DELTA,
        FILESYSTEM,
        DATAGEN,
        _PRINT,
        _BLACKHOLE,
    )
}


def read_options(script: Script, table: CreateTable) -> tuple[Connector, OptionValues]:
    nodes = _by_key(script, table)
    connector = _connector(script, table, nodes)
    options = {option.key: option for option in connector.options}
    for key, node in nodes.items():
        option = options.get(generic_key(key))
        if option is None:
            raise _unknown(script, node, connector, options)
        check_option(script, node, option)
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


def _connector(script: Script, table: CreateTable, nodes: dict[str, OptionNode]) -> Connector:
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
            hint=next((hint for name, hint in _INSTEAD if re.fullmatch(name, node.value)), None)
            or suggestion(node.value, CONNECTORS, f"Connectors are {names}."),
        )
    return CONNECTORS[node.value]


def _unknown(
    script: Script, node: OptionNode, connector: Connector, options: dict[str, Option]
) -> SqlError:
    prefix = PROPERTY if node.key.startswith(PROPERTY) else ""
    of_kind = [key for key in options if key.startswith(PROPERTY) == bool(prefix)]
    otherwise = f"Options of {connector.name} are " + (", ".join(of_kind) or "none") + "."
    column = node.key.removeprefix("fields.").rpartition(".")[0]
    known = (key.replace("#", column) for key in of_kind if column or "#" not in key)
    close = nearest(node.key.removeprefix(prefix), (k.removeprefix(prefix) for k in known))
    hint = otherwise if close is None else f'Did you mean "{prefix}{close}"?'
    for pattern, explanation in _EXPLAINED:
        if re.fullmatch(pattern, node.key):
            hint = explanation
            break
    return script.error(
        node.at, f'connector "{connector.name}" has no option "{node.key}"', hint=hint
    )
