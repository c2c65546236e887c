"""A broker that asks who comes: TLS with and without a certificate of ours, passwords, tokens.

Tokens are signed or not, by the listener. What is signed is checked by a set of keys.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import ScramMechanism, UserScramCredentialUpsertion

from service.embedded.broker import BrokerSettings, KafkaBroker
from service.embedded.java import Java
from service.embedded.process import LOOPBACK, free_port
from tests.support.certificates import self_signed
from tests.support.token_key import TokenKey

USER, PASSWORD = "ann", 'an "odd" \\ one'
PLAIN_PASSWORD = "plain-one"
_MODULES = "org.apache.kafka.common.security"
_ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed"
_LOGINS = {
    "plain": f'{_MODULES}.plain.PlainLoginModule required user_{USER}="{PLAIN_PASSWORD}";',
    "scram-sha-256": f"{_MODULES}.scram.ScramLoginModule required;",
    "scram-sha-512": f"{_MODULES}.scram.ScramLoginModule required;",
    "oauthbearer": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required "
    'unsecuredLoginStringClaim_sub="broker";',
}


@dataclass(frozen=True)
class SecuredBroker:
    """A broker with a listener of each kind.

    Attributes:
        open: its listener for tests that prepare something: who comes is let in.
        by_certificate: TLS, where clients have to show the certificate `client`.
        by_login: TLS and a login of any kind.
        by_token: a login by token only, and no TLS.
        by_signed_token: a login by a token that is signed with `token_key`, for `kafka`; and TLS.
        trusted: the certificate of the broker, which has signed itself.
        client: a certificate, and its key.
    """

    open: str
    by_certificate: str
    by_login: str
    by_token: str
    by_signed_token: str
    trusted: Path
    client: tuple[Path, Path]
    token_key: TokenKey


@contextmanager
def secured_broker(directory: Path, java: Java, jars: Sequence[Path]) -> Iterator[SecuredBroker]:
    """The broker while the block runs; `USER` may log in by PLAIN, SCRAM and a token."""
    names = ("open", "tls", "login", "token", "signed", "control")
    ports = dict(zip(names, _free_ports(len(names)), strict=True))
    at = {name: f"{LOOPBACK}:{port}" for name, port in ports.items()}
    (directory / "client").mkdir()
    cert, key = self_signed(directory)
    client = self_signed(directory / "client")
    keystore = directory / "keystore.pem"
    keystore.write_text(key.read_text() + cert.read_text())
    token_key, key_set = TokenKey(directory), directory / "jwks.json"
    key_set.write_text(token_key.key_set())
    settings = BrokerSettings(
        port=ports["open"],
        heap="256m",
        properties={**_properties(at, keystore, client[0]), **_signed(key_set)},
        jvm_options=(f"-D{_ALLOWED}.urls={key_set.as_uri()}", f"-D{_ALLOWED}.files={key_set}"),
    )
    with KafkaBroker(directory / "kafka", java, jars, settings):
        _add_user(at["open"])
        places = (at[name] for name in names[:-1])
        yield SecuredBroker(*places, cert, client, token_key)


def _free_ports(count: int) -> set[int]:
    ports: set[int] = set()
    while len(ports) < count:
        ports.add(free_port())
    return ports


def _properties(at: dict[str, str], keystore: Path, clients: Path) -> dict[str, str]:
    listeners = (
        f"PLAINTEXT://{at['open']},SSL://{at['tls']},SASL_SSL://{at['login']},"
        f"SASL_PLAINTEXT://{at['token']},SIGNED://{at['signed']}"
    )
    names = ("PLAINTEXT", "SSL", "SASL_SSL", "SASL_PLAINTEXT")
    protocols = ",".join([*(f"{name}:{name}" for name in names), "SIGNED:SASL_SSL"])
    logins = {
        f"listener.name.{listener}.{mechanism}.sasl.jaas.config": login.replace("\\", "\\\\")
        for mechanism, login in _LOGINS.items()
        for listener in ("sasl_ssl", "sasl_plaintext")
    }
    return {
        "listeners": f"{listeners},CONTROLLER://{at['control']}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": f"{protocols},CONTROLLER:PLAINTEXT",
        "controller.quorum.voters": f"1@{at['control']}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(clients),
        "listener.name.ssl.ssl.client.auth": "required",
        "listener.name.sasl_ssl.sasl.enabled.mechanisms": ",".join(_LOGINS).upper(),
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "OAUTHBEARER",
        **logins,
    }


def _signed(key_set: Path) -> dict[str, str]:
    listener, oauth = "listener.name.signed", f"{_MODULES}.oauthbearer"
    return {
        f"{listener}.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{listener}.oauthbearer.sasl.jaas.config": f"{oauth}.OAuthBearerLoginModule required;",
        f"{listener}.oauthbearer.sasl.server.callback.handler.class": f"{oauth}."
        "OAuthBearerValidatorCallbackHandler",
        f"{listener}.sasl.oauthbearer.jwt.validator.class": f"{oauth}.BrokerJwtValidator",
        f"{listener}.sasl.oauthbearer.jwks.endpoint.url": key_set.as_uri(),
        f"{listener}.sasl.oauthbearer.expected.audience": "kafka",
    }


def _add_user(servers: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=servers)
    try:
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            user = UserScramCredentialUpsertion(USER, mechanism, PASSWORD)
            errors = admin.alter_user_scram_credentials([user])
            assert errors == {USER: None}, errors
    finally:
        admin.close()
