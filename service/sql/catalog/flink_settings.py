"""Settings of Flink that have no effect here: what is there instead, told as a warning."""

import re

_INSTEAD: tuple[tuple[str, str], ...] = (
    (
        r"parallelism\.default|pipeline\.max-parallelism|table\.exec\.resource\..*|taskmanager\..*"
        r"|jobmanager\..*",
        "the partitions of the topic and the cores of Spark say what runs at once",
    ),
    (
        r"execution\.checkpointing\..*|state\..*|execution\.savepoint.*",
        "each micro-batch is a checkpoint; 'sluice.trigger-interval' is the time between two",
    ),
    (r"restart-strategy.*", "a job that fails is restarted by its supervisor"),
    (
        r"table\.exec\.state\.ttl",
        "no row is kept by its age: a window's state ends with the window, a dimension has the "
        "rows of its table",
    ),
    (
        r"table\.exec\.(mini-batch|async-.*|spill-.*|sort|window-agg|disabled-operators|shuffle-.*"
        r"|simplify-.*|uid|rank|local-hash-agg|deduplicate|interval-join|unbounded-over|delta-join"
        r")\b.*|table\.optimizer\..*|table\.generated-code\..*|pipeline\.(operator-chaining.*"
        r"|object-reuse|auto-generate-uids|generic-types|force-.*)|table\.builtin-.*",
        "it changes how Flink runs a query, not what comes of it",
    ),
    (
        r"pipeline\.auto-watermark-interval",
        "watermarks go on with each micro-batch; 'sluice.trigger-interval' is the time between two",
    ),
    (
        r"table\.exec\.emit\.(early|late)-fire\..*",
        "a window is emitted when it is complete, and again for each batch with late records that "
        "'table.exec.emit.allow-lateness' lets in",
    ),
    (
        r"table\.exec\.sink\.not-null-enforcer",
        "a record that gives a NOT NULL column NULL goes to the dead letters",
    ),
    (r"table\.exec\.sink\.type-length-enforcer", "CHAR(n) and VARCHAR(n) of a sink are STRING"),
    (
        r"table\.exec\.sink\.(keyed-shuffle|upsert-materialize|rowtime-inserter)",
        "rows go to a sink in the order of their batch, by the key that the table declares",
    ),
    (
        r"table\.exec\.source\.cdc-events-duplicate",
        "a change of a dimension is applied once, by its place in the source's log",
    ),
    (r"table\.dynamic-table-options\.enabled", "OPTIONS hints are always heeded"),
    (r"table\.dml-sync|execution\.attached", "`sluice submit` returns when the job is stored"),
    (
        r"sql-client\..*|table\.display\..*|sql-gateway\..*",
        "it is of Flink's client, which shows results in its own way",
    ),
    (
        r"(rest|metrics|web|yarn|kubernetes|env|classloader|high-availability|heartbeat|akka|pekko"
        r"|cluster|client|deployment|blob|jobstore|historyserver|queryable-state"
        r"|execution\.(target|shutdown.*|buffer-timeout.*|batch-shuffle-mode|batch\..*))\b.*",
        "it is of Flink's cluster, which is not there",
    ),
)
_CREDENTIAL = re.compile(r"passw|secret|token|credential|key|ssl|kerberos|java|opts", re.IGNORECASE)
_ONLY = {
    "table.sql-dialect": ("default", "scripts are in Flink's own dialect"),
    "table.exec.legacy-cast-behaviour": ("disabled", "a cast that fails is an error, as in Flink"),
}


def of_flink(key: str) -> str | None:
    """What is there instead of a setting of Flink's; None for a setting that is none of these."""
    if key in _ONLY:
        return _ONLY[key][1]
    if _CREDENTIAL.search(key) is not None:
        return None  # its value would be kept in the clear
    return next((text for pattern, text in _INSTEAD if re.fullmatch(pattern, key)), None)


def only_value(key: str) -> str | None:
    return _ONLY[key][0] if key in _ONLY else None
