"""Where a request comes from: its address, also behind a proxy, and whose page has sent it."""

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from service.config import Settings
from service.errors import ForbiddenError

_LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
_SHOWN = 100
_Address = IPv4Address | IPv6Address


class Peers:
    """Checks Host and Origin against DNS rebinding and cross-site requests; knows the proxies."""

    def __init__(self, settings: Settings) -> None:
        self._proxies = [ip_network(text) for text in settings.proxies]
        only_local = settings.on_loopback and not self._proxies
        self._names = _LOCAL_NAMES | {settings.host} if only_local else None

    def address(self, peer: str, headers: Mapping[bytes, bytes]) -> str:
        """The address that asks: what the nearest trusted proxy says, else the connection's.

        An IPv6 network of one customer (/64) counts as one address.
        """
        chain = headers.get(b"x-forwarded-for", b"").decode("latin-1").split(",")
        address = _parsed(peer)
        while address is not None and self._is_proxy(address) and chain:
            forwarded = _parsed(chain.pop().strip())
            if forwarded is None:
                break
            address = forwarded
        return peer[:_SHOWN] if address is None else _of_one_customer(address)

    def check_way(self, peer: str) -> None:
        """Return if the connection comes the way that is set: from the proxy, if there is one.

        Raises:
            ForbiddenError: somebody goes around the proxy, so without its TLS.
        """
        if self._proxies and not self.is_proxy(peer):
            raise ForbiddenError(
                f"address {peer[:_SHOWN]} is none of the trusted proxies",
                hint="Use the proxy's address; SLUICE_TRUSTED_PROXIES names who may pass on.",
            )

    def check_page(self, headers: Mapping[bytes, bytes]) -> None:
        """Return if Host and Origin, where a browser sends one, are this control plane's.

        Raises:
            ForbiddenError: they are somebody else's.
        """
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
