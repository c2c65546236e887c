"""Our own certificate for a connection: OpenSSL reads files only, so that it is one in memory."""

import os
import ssl


def load_certificate(context: ssl.SSLContext, cert: str, key: str, password: str = "") -> None:
    """Have `context` show a certificate; both are PEM, `password` is the key's passphrase.

    Raises:
        ssl.SSLError: they cannot be used.
    """
    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(f"{cert}\n{key}\n".encode())
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=password)  # "" asks nobody
    finally:
        os.close(descriptor)
