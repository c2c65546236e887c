"""Self-signed certificates for tests, by the machine's OpenSSL."""

import subprocess
from pathlib import Path


def self_signed(directory: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and its key."""
    cert, key = directory / "cert.pem", directory / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=sluice", "-keyout", key, "-out", cert]
    command += ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key


def encrypted_key(directory: Path, key: Path) -> Path:
    """The same key under a passphrase."""
    locked = directory / "locked.pem"
    command = ["openssl", "pkey", "-in", key, "-aes256", "-passout", "pass:x", "-out", locked]
    subprocess.run(command, check=True, capture_output=True)
    return locked
