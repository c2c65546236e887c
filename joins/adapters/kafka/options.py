"""What clients of Kafka are given for a cluster: kafka-python's arguments, and Spark's options."""

from typing import Any

from joins.plan.plan import COMPRESSION_TYPE, ISOLATION_LEVEL, KafkaOptions

_CLIENT_NAMES = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
}
_FETCH = {
    "kafka.max.poll.records": "10000",
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.receive.buffer.bytes": str(1 << 20),
    "kafka.fetch.max.wait.ms": "5",
}
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def client_options(kafka: KafkaOptions) -> dict[str, Any]:
    """kafka-python's keyword arguments for `kafka`."""
    options: dict[str, Any] = {"bootstrap_servers": kafka.bootstrap_servers.split(",")}
    for name, value in kafka.properties:
        if name in _CLIENT_NAMES:
            options[_CLIENT_NAMES[name]] = value
    return options


def reader_options(kafka: KafkaOptions) -> dict[str, str]:
    """Spark's options for a source; a SASL login is put together here, never by the user.

    It fetches more at a time than a consumer does by itself, unless `kafka` says how much. A poll
    of 500 records and a fetch of 1 MiB, the defaults, cost a third of the time that Spark needs for
    small records (measured). Behind each poll Spark asks for the partition's offsets, and the
    broker answers only after the fetch that already waits for more: by default 500 ms, for each
    partition, where nothing more comes.
    """
    properties = {**dict(kafka.properties), ISOLATION_LEVEL: kafka.isolation.value}
    properties.pop(COMPRESSION_TYPE, None)  # who reads has none
    username, password = properties.pop("sasl.username", None), properties.pop("sasl.password", "")
    options = {**_FETCH, **{f"kafka.{name}": value for name, value in properties.items()}}
    options["kafka.bootstrap.servers"] = kafka.bootstrap_servers
    if username is not None:
        module = _LOGIN_MODULES[properties.get("sasl.mechanism", "PLAIN")]
        name, secret = (v.replace("\\", "\\\\").replace('"', '\\"') for v in (username, password))
        options["kafka.sasl.jaas.config"] = (
            f'{module} required username="{name}" password="{secret}";'
        )
    return options
