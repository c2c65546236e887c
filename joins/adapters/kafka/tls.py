"""TLS to brokers: whom we trust and who we are, from the PEM texts of the client's properties."""

import ssl
from collections.abc import Mapping

from kafka import errors as kafka_errors

from joins.adapters.certificate import load_certificate
from joins.plan.connections import (
    KEY_PASSWORD,
    KEYSTORE_CERTIFICATES,
    KEYSTORE_KEY,
    TRUSTSTORE_CERTIFICATES,
    VERIFIED_NAME,
)


def is_secured(properties: Mapping[str, str]) -> bool:
    return properties.get("security.protocol", "").endswith("SSL")


def tls_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """How a connection to a broker is secured.

    Raises:
        KafkaConfigurationError: a certificate or the key cannot be used.
    """
    try:
        context = ssl.create_default_context(cadata=properties.get(TRUSTSTORE_CERTIFICATES))
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = properties.get(VERIFIED_NAME, "https") == "https"
        if KEYSTORE_CERTIFICATES in properties:
            key, password = properties.get(KEYSTORE_KEY, ""), properties.get(KEY_PASSWORD, "")
            load_certificate(context, properties[KEYSTORE_CERTIFICATES], key, password)
    except (ssl.SSLError, ValueError) as exc:
        raise kafka_errors.KafkaConfigurationError(
            f"the PEM texts of ssl.truststore and ssl.keystore cannot be used: {exc}"
        ) from exc
    return context
