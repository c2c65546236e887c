"""How brokers are reached and who logs in: options of Kafka's client that belong together."""

from joins.plan.connections import (
    CLIENT_ID,
    CLIENT_SECRET,
    KEY_PASSWORD,
    KEYSTORE_CERTIFICATES,
    KEYSTORE_FILE,
    KEYSTORE_KEY,
    SCOPE,
    TOKEN_URL,
    TRUSTSTORE_CERTIFICATES,
    TRUSTSTORE_FILE,
)
from service.sql.catalog.kafka_options import PROPERTY
from service.sql.catalog.option_values import OptionValues

_PROTOCOL, _MECHANISM = "security.protocol", "sasl.mechanism"
_BY_PASSWORD = ("sasl.username", "sasl.password")
_BY_TOKEN = (TOKEN_URL, CLIENT_ID, CLIENT_SECRET)
_SERVERS = PROPERTY + "bootstrap.servers"


def client_properties(values: OptionValues) -> tuple[tuple[str, str], ...]:
    """The client's properties without their prefix and without the brokers.

    Raises:
        SqlError: some contradict each other, or lack others.
    """
    properties = {
        key.removeprefix(PROPERTY): node.value
        for key, node in values.nodes.items()
        if key.startswith(PROPERTY) and key != _SERVERS
    }
    protocol = properties.get(_PROTOCOL, "PLAINTEXT")
    if protocol.startswith("SASL"):
        _check_login(values, properties)
    else:
        _refuse(values, properties, "sasl.", f"'{PROPERTY}{_PROTOCOL}' = 'SASL_SSL'", protocol)
    if protocol.endswith("SSL"):
        _check_tls(values)
    else:
        secured = "SASL_SSL" if protocol.startswith("SASL") else "SSL"
        _refuse(values, properties, "ssl.", f"'{PROPERTY}{_PROTOCOL}' = '{secured}'", protocol)
    return tuple(sorted(properties.items()))


def _check_login(values: OptionValues, properties: dict[str, str]) -> None:
    mechanism = values.required(PROPERTY + _MECHANISM)
    is_token = mechanism == "OAUTHBEARER"
    for key in _BY_TOKEN if is_token else _BY_PASSWORD:
        values.required(PROPERTY + key)
    other = "SCRAM-SHA-512" if is_token else "OAUTHBEARER"
    for key in _BY_PASSWORD if is_token else (*_BY_TOKEN, SCOPE):
        needed = f"'{PROPERTY}{_MECHANISM}' = '{other}'"
        _refuse(values, properties, key, needed, mechanism)


def _check_tls(values: OptionValues) -> None:
    for text, file in (
        (TRUSTSTORE_CERTIFICATES, TRUSTSTORE_FILE),
        (KEYSTORE_CERTIFICATES, KEYSTORE_FILE),
    ):
        if {PROPERTY + text, PROPERTY + file} <= values.nodes.keys():
            raise values.error(
                PROPERTY + file,
                f'both "{PROPERTY}{text}" and "{PROPERTY}{file}" are given',
                hint="Remove one of the two.",
            )
    values.require_pair(PROPERTY + KEYSTORE_CERTIFICATES, PROPERTY + KEYSTORE_KEY)
    if PROPERTY + KEYSTORE_FILE not in values.nodes:
        values.require_beside(PROPERTY + KEY_PASSWORD, PROPERTY + KEYSTORE_KEY)


def _refuse(
    values: OptionValues, properties: dict[str, str], prefix: str, needed: str, protocol: str
) -> None:
    extra = [key for key in properties if key.startswith(prefix)]
    if extra:
        raise values.error(
            PROPERTY + extra[0],
            f'option "{PROPERTY}{extra[0]}" has no effect with {protocol}',
            hint=f"Add {needed}.",
        )
