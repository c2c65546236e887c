"""A server that speaks Azure's Blob protocol (Azurite, by npm), with one empty container."""

import base64
import hashlib
import hmac
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from joins.adapters.store_path import StorePath
from joins.plan.connections import AZURE_ENDPOINT, AZURE_KEY, StoreOptions
from service.embedded.process import free_port
from tests.support.wait import wait_until

_PACKAGE = "azurite@3.35.0"
_ACCOUNT = "devstoreaccount1"
# the emulator's well-known one
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_CONTAINER = "lake"
_ADDRESS = f"abfss://{_CONTAINER}@{_ACCOUNT}.dfs.core.windows.net"


class Azurite:
    """A running one."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}/{_ACCOUNT}"
        self.options: StoreOptions = ((AZURE_ENDPOINT, self.endpoint), (AZURE_KEY, _KEY))

    @property
    def environment(self) -> dict[str, str]:
        return {"AZURE_STORAGE_ENDPOINT": self.endpoint, "AZURE_STORAGE_ACCOUNT_KEY": _KEY}

    @property
    def warehouse(self) -> str:
        return f"{_ADDRESS}/lake"

    def path(self, key: str) -> StorePath:
        options = () if "AZURE_STORAGE_ACCOUNT_KEY" in os.environ else self.options
        return StorePath.of(f"{_ADDRESS}/{key}", options)

    def keys(self, prefix: str) -> list[str]:
        names = (str(each).removeprefix(f"{_ADDRESS}/") for each in self.path("").below())
        return [name for name in names if name.startswith(prefix)]

    def create_container(self) -> bool:
        """Whether it is there; the server may not answer yet."""
        date = f"{datetime.now(UTC):%a, %d %b %Y %H:%M:%S} GMT"
        resource = f"/{_ACCOUNT}/{_ACCOUNT}/{_CONTAINER}\nrestype:container"
        text = "PUT" + "\n" * 12 + f"x-ms-date:{date}\nx-ms-version:2021-08-06\n{resource}"
        digest = hmac.new(base64.b64decode(_KEY), text.encode(), hashlib.sha256).digest()
        headers = {
            "x-ms-date": date,
            "x-ms-version": "2021-08-06",
            "Authorization": f"SharedKey {_ACCOUNT}:{base64.b64encode(digest).decode()}",
        }
        address = f"{self.endpoint}/{_CONTAINER}?restype=container"
        try:
            return httpx.put(address, headers=headers).status_code in (201, 409)
        except httpx.TransportError:
            return False


@contextmanager
def azurite(directory: Path) -> Iterator[Azurite]:
    """A server whose files are below `directory`."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm on PATH, which installs Azurite (Debian: npm)")
    home, port = directory / "azurite", free_port()
    home.mkdir()
    install = [npm, "install", "--prefix", str(home), "--no-fund", "--no-audit", "--silent"]
    subprocess.run([*install, _PACKAGE], check=True, timeout=240)
    command = [home / "node_modules" / ".bin" / "azurite-blob", "--location", home / "data"]
    command += ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    command += ["--skipApiVersionCheck", "--silent"]
    server = Azurite(port)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(server.create_container, what="azurite answers")
        yield server
    finally:
        process.terminate()
        process.wait(timeout=300)
