"""Options of Kafka's client under Kafka's names: used, accepted without effect, or refused."""

import re
from dataclasses import replace
from typing import Any

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
    VERIFIED_NAME,
    ClientNumber,
)
from service.sql.catalog.option import (
    ADDRESS,
    PEM,
    READ,
    Option,
    OptionType,
    TableRole,
    ignored,
    only_value,
)
from service.sql.catalog.option_values import SECRET, literal
from service.sql.grammar.syntax import CreateTable, OptionNode

PROPERTY = "properties."
_FILE: dict[str, Any] = {
    "pattern": r"/[^\x00-\x1f\x7f]{1,1023}",
    "form": "an absolute path in a directory of SLUICE_ALLOWED_PEM_PATHS",
}
_SECURITY = (
    Option(
        "security.protocol",
        "How to reach the brokers.",
        OptionType.CHOICE,
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    Option(
        "sasl.mechanism",
        "How to log in.",
        OptionType.CHOICE,
        choices=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"),
    ),
    Option("sasl.username", "User of the login by PLAIN or SCRAM.", reference=True),
    Option("sasl.password", "Its password.", credential=True, reference=True),
    Option(
        TOKEN_URL,
        "With OAUTHBEARER: where the client's id and secret are exchanged for a token (grant "
        "`client_credentials`).",
        **ADDRESS,
    ),
    Option(CLIENT_ID, "With OAUTHBEARER: the client's id.", reference=True),
    Option(CLIENT_SECRET, "With OAUTHBEARER: its secret.", credential=True, reference=True),
    Option(SCOPE, "With OAUTHBEARER: the requested scope; none when missing."),
    Option(
        "ssl.truststore.type",
        "Only PEM texts are read, no Java keystores.",
        OptionType.CHOICE,
        choices=("PEM",),
    ),
    Option(
        TRUSTSTORE_CERTIFICATES,
        "With TLS: CA certificates for the brokers' certificates; the machine's CA store when "
        "missing.",
        **PEM,
    ),
    Option(TRUSTSTORE_FILE, "The same as a file of the control plane's machine.", **_FILE),
    Option(
        "ssl.keystore.type",
        "Only PEM texts are read, no Java keystores.",
        OptionType.CHOICE,
        choices=("PEM",),
    ),
    Option(
        KEYSTORE_CERTIFICATES, "With TLS: client certificate, for brokers that require one.", **PEM
    ),
    Option(KEYSTORE_KEY, "Its key.", credential=True, **PEM),
    Option(KEYSTORE_FILE, "A file with the client certificate and its key.", **_FILE),
    Option(KEY_PASSWORD, "The key's passphrase, if it has one.", credential=True, reference=True),
    Option(
        VERIFIED_NAME,
        "With TLS: whether a broker's certificate must have its host's name; with '' only its CA "
        "is checked.",
        OptionType.CHOICE,
        default="https",
        choices=("https", ""),
    ),
)
_MEANINGS = {
    ClientNumber.FETCH_BYTES: "Bytes that a broker sends at once when records are read.",
    ClientNumber.PARTITION_BYTES: "Bytes of a partition that a broker sends at once.",
    ClientNumber.IDLE_MS: "After how long an unused connection is closed.",
    ClientNumber.METADATA_MS: "Interval at which the cluster's partitions are refreshed.",
    ClientNumber.BACKOFF_MS: "First delay before a reconnect to a broker.",
    ClientNumber.BACKOFF_MAX_MS: "Longest delay before a reconnect to a broker.",
    ClientNumber.RETRY_MS: "Delay before a failed request is repeated.",
    ClientNumber.RECEIVE_BYTES: "Receive buffer of a socket.",
    ClientNumber.SEND_BYTES: "Send buffer of a socket.",
}
_OF_FETCHES = (ClientNumber.FETCH_BYTES, ClientNumber.PARTITION_BYTES)
_TUNING = (
    Option(
        "client.id",
        "Client id in the brokers' logs, metrics and quotas.",
        pattern=r"[A-Za-z0-9._-]{1,200}",
        form="1 to 200 letters, digits, '.', '_' or '-'",
    ),
    *(
        Option(
            name,
            meaning,
            OptionType.NUMBER,
            lowest=1,
            highest=2**31 - 1,
            roles=READ if name in _OF_FETCHES else frozenset(TableRole),
        )
        for name, meaning in _MEANINGS.items()
    ),
)


def _property(option: Option) -> Option:
    return replace(option, key=PROPERTY + option.key)


CLIENT_OPTIONS = tuple(map(_property, (*_SECURITY, *_TUNING)))
_BY_USER = "'properties.sasl.username' and 'properties.sasl.password'"
_BY_TOKEN = f"'{PROPERTY}{CLIENT_ID}' and '{PROPERTY}{CLIENT_SECRET}'"

IGNORED = ignored("kafka-client", PROPERTY)
"""Names of Kafka and Flink that have no effect here; `REFUSED` goes first."""
REFUSED = (
    (r"sasl\.jaas\.config", f"Write {_BY_USER} instead; with OAUTHBEARER {_BY_TOKEN}."),
    (r"transactional\.id", "Write 'sink.transactional-id-prefix' instead."),
    (
        r"ssl\.(?:truststore|keystore)\.(?:password|location)|ssl\.key\.location",
        "Remove it: only a key of PEM has a passphrase, 'properties.ssl.key.password'.",
    ),
    (
        r"sasl\.kerberos\..*",
        "Remove it: there is no Kerberos; log in by SCRAM-SHA-512, PLAIN or OAUTHBEARER.",
    ),
    (
        r"sasl\.(?:login|client|oauthbearer)\..*",
        "Remove it: a token is requested with the client's id and secret, and renewed before it "
        "expires.",
    ),
    (
        r"ssl\..*",
        "Remove it: TLS 1.2 or 1.3 is used, with the ciphers of this machine's OpenSSL.",
    ),
)
"""Names, without their prefix, whose loss would change who is let in; and what to do."""
_JAAS = f"{PROPERTY}sasl.jaas.config"
_IN_QUOTES = r"""(?:"([^"\\\r\n]+)"|'([^'\\\r\n]+)')"""
_LOGIN_MODULE = re.compile(
    r"\s*[\w.]+\.(?:plain\.Plain|scram\.Scram)LoginModule\s+required"
    rf"((?:\s+\w+\s*=\s*{_IN_QUOTES}){{2}})\s*;\s*"
)


def with_login(table: CreateTable) -> tuple[CreateTable, tuple[str, ...]]:
    """The table with the login of its JAAS text as options, and a warning that says so.

    Another login module, and what a module has beside a name and a password, stays as it is, so
    that it is refused by its name.
    """
    by_key = {node.key: node for node in table.options}
    node = by_key.get(_JAAS)
    module = None if node is None else _LOGIN_MODULE.fullmatch(node.value)
    if node is None or module is None:
        return table, ()
    pairs = re.findall(rf"(\w+)\s*=\s*{_IN_QUOTES}", module[1])
    login = {f"{PROPERTY}sasl.{key}": double or single for key, double, single in pairs}
    user, password = f"{PROPERTY}sasl.username", f"{PROPERTY}sasl.password"
    if set(login) != {user, password} or not by_key.keys().isdisjoint(login):
        return table, ()
    if any("${" in value and SECRET.fullmatch(value) is None for value in login.values()):
        return table, ()
    inside = (node.at, f"{literal(user)} = {literal(login[user])}, {literal(password)} = ", "")
    made = [
        # Inside the literal no other value begins.
        OptionNode(key, login[key], node.at, node.value_at + place, node.end, inside)
        for place, key in enumerate((user, password), 1)
    ]
    options = [each for each in table.options if each is not node]
    note = f'Table "{table.name.text}" logs in by the name and the password of "{_JAAS}".'
    return replace(table, options=(*options, *made)), (note,)


OF_FLINK = ignored("formats")
OF_FLINK_KAFKA = (
    *OF_FLINK,
    only_value(
        "sink.partitioner",
        ("default", "fixed", "round-robin"),
        "a record goes to the partition of its key; without a key the partitions take turns",
        "Remove it: code cannot be added to a job.",
    ),
    only_value(
        "sink.semantic",
        ("at-least-once", "none"),
        "'sink.delivery-guarantee' is its newer name, and at-least-once its default",
        "Write 'sink.delivery-guarantee' = 'exactly-once' instead.",
    ),
    *(
        only_value(
            f"record.{part}.include.kafka.connect.json.schema",
            ("false",),
            "records of rows have no schema in them",
            "Remove it, and let the connector write without schemas: "
            "'value.converter.schemas.enable' = 'false' in its configuration.",
        )
        for part in ("key", "value")
    ),
    *ignored("kafka"),
)
