"""A key that signs tokens, and the set of keys that a broker checks them by; by OpenSSL."""

import base64
import json
import subprocess
from pathlib import Path
from typing import Any


class TokenKey:
    """An RSA key of a provider of tokens.

    Args:
        directory: where it is kept; there is none other in it.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / "token-key.pem"
        _openssl("genrsa", "-out", str(self._path), "2048")

    def key_set(self) -> str:
        """The public half as a JWKS."""
        said = _openssl("rsa", "-in", str(self._path), "-noout", "-modulus").decode()
        modulus = bytes.fromhex(said.strip().removeprefix("Modulus="))
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "one"}
        return json.dumps({"keys": [{**key, "n": _text(modulus), "e": _text(b"\1\0\1")}]})

    def signed(self, claims: dict[str, Any]) -> str:
        """A JWT with these claims."""
        parts = ({"alg": "RS256", "typ": "JWT", "kid": "one"}, claims)
        text = ".".join(_text(json.dumps(part).encode()) for part in parts)
        signature = _openssl("dgst", "-sha256", "-sign", str(self._path), of=text.encode())
        return f"{text}.{_text(signature)}"


def unsigned(claims: dict[str, Any]) -> str:
    return ".".join([*(_text(json.dumps(part).encode()) for part in ({"alg": "none"}, claims)), ""])


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def _openssl(*arguments: str, of: bytes | None = None) -> bytes:
    done = subprocess.run(["openssl", *arguments], check=True, capture_output=True, input=of)
    return done.stdout
