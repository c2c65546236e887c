"""What clients of Kafka are given for a cluster: kafka-python's arguments."""

from typing import Any

from joins.plan.plan import KafkaOptions

_CLIENT_NAMES = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
}


def client_options(kafka: KafkaOptions) -> dict[str, Any]:
    """kafka-python's keyword arguments for `kafka`."""
    options: dict[str, Any] = {"bootstrap_servers": kafka.bootstrap_servers.split(",")}
    for name, value in kafka.properties:
        if name in _CLIENT_NAMES:
            options[_CLIENT_NAMES[name]] = value
    return options
