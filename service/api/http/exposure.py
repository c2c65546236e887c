"""Where the control plane may listen, its TLS, and the origin of its requests."""

import ssl
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from service.config import Settings
from service.errors import ConfigError, ForbiddenError
from service.jobs.store.token_store import TokenStore

_LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
_SHOWN = 100
_Address = IPv4Address | IPv6Address


class Peers:
    """Checks Host and Origin against DNS rebinding and cross-site requests; trusts the proxies."""

    def __init__(self, settings: Settings) -> None:
        self._proxies = [ip_network(text) for text in settings.proxies]
        only_local = settings.on_loopback and not self._proxies
        self._names = _LOCAL_NAMES | {settings.host} if only_local else None

    def address(self, peer: str, headers: Mapping[bytes, bytes]) -> str:
        """The client's address, as the nearest trusted proxy reports it; IPv6 counts as its /64."""
        chain = headers.get(b"x-forwarded-for", b"").decode("latin-1").split(",")
        address = _parsed(peer)
        while address is not None and self._is_proxy(address) and chain:
            forwarded = _parsed(chain.pop().strip())
            if forwarded is None:
                break
            address = forwarded
        return peer[:_SHOWN] if address is None else _of_one_customer(address)

    def check_way(self, peer: str) -> None:
        """Raise ForbiddenError if a connection bypasses the trusted proxies and so their TLS."""
        if self._proxies and not self.is_proxy(peer):
            raise ForbiddenError(
                f"address {peer[:_SHOWN]} is not a trusted proxy",
                hint="Use the proxy's address; SLUICE_TRUSTED_PROXIES lists the trusted proxies.",
            )

    def check_page(self, headers: Mapping[bytes, bytes]) -> None:
        """Raise ForbiddenError unless Host, and Origin if sent, name this control plane."""
        host = headers.get(b"host", b"").decode("latin-1")
        if self._names is not None and _name(f"//{host}") not in self._names:
            raise ForbiddenError(f'host "{host[:_SHOWN]}" is not this control plane', hint=_HINT)
        origin = headers.get(b"origin", b"").decode("latin-1")
        if origin and _place(origin) != host.lower():
            raise ForbiddenError(
                f'origin "{origin[:_SHOWN]}" may not use this control plane', hint=_HINT
            )

    def is_proxy(self, peer: str) -> bool:
        address = _parsed(peer)
        return address is not None and self._is_proxy(address)

    def _is_proxy(self, address: _Address) -> bool:
        return any(address in network for network in self._proxies)


_HINT = "Use the control plane's own address; other web sites may not use it."


def _parsed(text: str) -> _Address | None:
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _of_one_customer(address: _Address) -> str:
    if isinstance(address, IPv4Address) or address.is_loopback:
        return str(address)
    return str(ip_network((address, 64), strict=False))


def _name(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


def _place(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


def check_settings(settings: Settings) -> None:
    """Raise ConfigError if the settings would expose the control plane unsafely."""
    if not settings.on_loopback and settings.tls_cert is None and not settings.proxies:
        raise ConfigError(
            f'setting SLUICE_HOST is "{settings.host}", which is not loopback, and TLS is off: '
            "tokens would be sent unencrypted",
            hint="Set SLUICE_TLS_CERT and SLUICE_TLS_KEY; or SLUICE_TRUSTED_PROXIES, if a proxy "
            "terminates TLS; or listen on loopback and use an SSH tunnel.",
        )
    if settings.tls_key is not None and settings.tls_cert is None:
        raise ConfigError(
            "setting SLUICE_TLS_KEY is set without SLUICE_TLS_CERT",
            hint="Set both, or none of them.",
        )
    if settings.tokens_required and settings.failpoints:
        raise ConfigError(
            f'setting SLUICE_FAILPOINTS is "{settings.failpoints}", expected none with tokens',
            hint="Planted faults are for tests on loopback; unset SLUICE_FAILPOINTS.",
        )


def check_tokens(settings: Settings, tokens: TokenStore) -> None:
    """Raise ConfigError if tokens are required and none is usable.

    With SLUICE_AUTH_REQUIRED the first token may be created while the control plane runs.
    """
    if settings.tokens_required and not settings.auth_required and not tokens.usable():
        where = "behind a proxy" if settings.proxies else f'on "{settings.host}"'
        raise ConfigError(
            f"control plane {where} requires tokens, and no usable token exists",
            hint="Create the first one with sluice tokens create --name me --scope admin, then "
            "start again; or set SLUICE_AUTH_REQUIRED=true and create it later.",
        )


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """The TLS context; None without a certificate.

    Raises:
        ConfigError: certificate and key cannot be used.
    """
    if settings.tls_cert is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[settings.tls_min_version]
    try:
        context.load_cert_chain(settings.tls_cert, settings.tls_key, password=_no_passphrase)
    except (OSError, ValueError) as exc:
        raise ConfigError(
            f'certificate "{settings.tls_cert}" with key "{settings.tls_key or settings.tls_cert}" '
            f"cannot be used: {exc.strerror if isinstance(exc, OSError) else exc}",
            hint="SLUICE_TLS_CERT is the chain, SLUICE_TLS_KEY its key, both PEM, readable by "
            "this user; the key has no passphrase.",
        ) from exc
    return context


def _no_passphrase() -> str:
    raise ValueError("the key has a passphrase")
