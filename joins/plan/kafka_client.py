"""Properties of Kafka's client by their names, as plans keep them."""

from enum import StrEnum

TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"
CLIENT_ID = "sasl.oauthbearer.client.credentials.client.id"
CLIENT_SECRET = "sasl.oauthbearer.client.credentials.client.secret"
SCOPE = "sasl.oauthbearer.scope"
TRUSTSTORE_CERTIFICATES = "ssl.truststore.certificates"
TRUSTSTORE_FILE = "ssl.truststore.location"
KEYSTORE_CERTIFICATES = "ssl.keystore.certificate.chain"
KEYSTORE_KEY = "ssl.keystore.key"
KEYSTORE_FILE = "ssl.keystore.location"
KEY_PASSWORD = "ssl.key.password"
VERIFIED_NAME = "ssl.endpoint.identification.algorithm"
OF_THE_TOKEN_ENDPOINT = (CLIENT_ID, CLIENT_SECRET)
"""Who gets to know them is not a broker."""
FILES = {TRUSTSTORE_FILE: TRUSTSTORE_CERTIFICATES, KEYSTORE_FILE: KEYSTORE_CERTIFICATES}
"""What names a file → what its text is."""
CREDENTIALS = frozenset({"sasl.password", CLIENT_SECRET, KEYSTORE_KEY, KEYSTORE_FILE, KEY_PASSWORD})


class ClientNumber(StrEnum):
    """Properties that are numbers."""

    FETCH_BYTES = "fetch.max.bytes"
    PARTITION_BYTES = "max.partition.fetch.bytes"
    IDLE_MS = "connections.max.idle.ms"
    METADATA_MS = "metadata.max.age.ms"
    BACKOFF_MS = "reconnect.backoff.ms"
    BACKOFF_MAX_MS = "reconnect.backoff.max.ms"
    RETRY_MS = "retry.backoff.ms"
    RECEIVE_BYTES = "receive.buffer.bytes"
    SEND_BYTES = "send.buffer.bytes"
