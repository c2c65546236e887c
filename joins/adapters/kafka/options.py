"""What clients of Kafka are given for a cluster: kafka-python's arguments."""

from typing import Any

from joins.adapters.kafka.connections import NetClient
from joins.adapters.kafka.oauth import TokenProvider
from joins.adapters.kafka.tls import is_secured, tls_context
from joins.plan.connections import ClientNumber
from joins.plan.plan import KafkaOptions

_CLIENT_NAMES = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "client.id": "client_id",
}
_NUMBERS = {
    ClientNumber.IDLE_MS: "connections_max_idle_ms",
    ClientNumber.METADATA_MS: "metadata_max_age_ms",
    ClientNumber.BACKOFF_MS: "reconnect_backoff_ms",
    ClientNumber.BACKOFF_MAX_MS: "reconnect_backoff_max_ms",
    ClientNumber.RETRY_MS: "retry_backoff_ms",
    ClientNumber.RECEIVE_BYTES: "receive_buffer_bytes",
    ClientNumber.SEND_BYTES: "send_buffer_bytes",
}


def client_options(kafka: KafkaOptions) -> dict[str, Any]:
    """kafka-python's keyword arguments for `kafka`.

    Raises:
        KafkaError: a certificate cannot be used, or there is no token for the login.
    """
    properties = dict(kafka.properties)
    servers = kafka.bootstrap_servers.split(",")
    options: dict[str, Any] = {"bootstrap_servers": servers, "kafka_client": NetClient}
    for name, value in properties.items():
        if name in _CLIENT_NAMES:
            options[_CLIENT_NAMES[name]] = value
        elif name in _NUMBERS:
            options[_NUMBERS[ClientNumber(name)]] = int(value)
    if is_secured(properties):
        options["ssl_context"] = tls_context(properties)
    if properties.get("sasl.mechanism") == "OAUTHBEARER":
        options["sasl_oauth_token_provider"] = TokenProvider(properties)
    return options
