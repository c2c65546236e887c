"""Errors of the embedded runtime.

| error | fault |
|---|---|
| `EmbeddedError` | root of this package |
| `JavaNotFoundError` | there is no Java that we can use |
| `JarCacheError` | the cache of jars and binaries cannot be filled, read or trusted |
| `ServerStartError` | an embedded server did not start, or its data directory is in use |
"""

from service.errors import ServiceError


class EmbeddedError(ServiceError, fault="embedded"):
    """A fault of the embedded Java, jars or servers."""


class JavaNotFoundError(EmbeddedError, fault="java-not-found"):
    """There is no Java 17 to 25."""


class JarCacheError(EmbeddedError, fault="jar-cache"):
    """Jars or binaries cannot be fetched, or differ from what the lock file pins."""


class ServerStartError(EmbeddedError, fault="server-start"):
    """An embedded server cannot be started."""
