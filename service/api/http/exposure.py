"""Whether the control plane may listen where it is set to: what it needs, and its TLS."""

import ssl

from service.config import Settings
from service.errors import ConfigError
from service.jobs.store.token_store import TokenStore

_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


def check_settings(settings: Settings) -> None:
    """Return if nothing that is set makes the control plane unsafe to reach.

    Raises:
        ConfigError: it would be; says what to set.
    """
    if not settings.on_loopback and settings.tls_cert is None and not settings.proxies:
        raise ConfigError(
            f'setting SLUICE_HOST is "{settings.host}", which others can reach, and there is no '
            "TLS: tokens would travel in the clear",
            hint="Set SLUICE_TLS_CERT and SLUICE_TLS_KEY; or SLUICE_TRUSTED_PROXIES, if a proxy "
            "ends TLS; or listen on loopback and use an SSH tunnel.",
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
    """Return if somebody can get in, or nobody has to show a token.

    With SLUICE_AUTH_REQUIRED the first token may be made later, beside the running control plane.

    Raises:
        ConfigError: a token is needed, and there is none.
    """
    if settings.tokens_required and not settings.auth_required and not tokens.usable():
        where = "behind a proxy" if settings.proxies else f'on "{settings.host}"'
        raise ConfigError(
            f"control plane {where} needs tokens, and there is none that can be used",
            hint="Make the first one with sluice tokens create --name me --scope admin, then start "
            "again; or set SLUICE_AUTH_REQUIRED=true and make it later.",
        )


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """What TLS is spoken with; None without a certificate.

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
