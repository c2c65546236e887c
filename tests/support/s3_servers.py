"""Servers that speak S3 on files: S3Proxy (by Ivy) and the gateway of Versity (by go)."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import BotoCoreError, ClientError

from joins.adapters.store_path import StorePath
from joins.plan.connections import S3_ENDPOINT, S3_KEY, S3_SECRET, StoreOptions
from service.embedded.jars import JarSet, at
from service.embedded.java import Java
from service.embedded.process import free_port
from tests.support.relock import resolve
from tests.support.wait import wait_until

_KEY, _SECRET = "ci-key-id", "ci-secret-key"
_S3PROXY = "org.gaul:s3proxy:2.6.0"
_GATEWAY = "github.com/versity/versitygw/cmd/versitygw"
_START_S = 60.0


@dataclass(frozen=True)
class S3Server:
    """A running one."""

    endpoint: str
    numbers: "count[int]"

    @property
    def options(self) -> StoreOptions:
        return ((S3_ENDPOINT, self.endpoint), (S3_KEY, _KEY), (S3_SECRET, _SECRET))

    def new_bucket(self) -> StorePath:
        """A path in a bucket that nobody has used."""
        bucket = f"lake-{next(self.numbers)}"
        client: Any = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=_KEY,
            aws_secret_access_key=_SECRET,
        )
        client.create_bucket(Bucket=bucket)
        return StorePath.of(f"s3://{bucket}/out", self.options)

    def answers(self) -> StorePath | None:
        try:
            return self.new_bucket()
        except (BotoCoreError, ClientError):
            return None


@contextmanager
def s3proxy(directory: Path, java: Java) -> Iterator[S3Server]:
    """S3Proxy with its files below `directory`."""
    scratch, data, port = directory / "jars", directory / "data", free_port()
    for each in (scratch, data):
        each.mkdir()
    resolve([(at(JarSet.REFERENCE, _S3PROXY), True)], java=java, scratch=scratch)
    jars = [path for path in scratch.rglob("*.jar") if "ivy" not in path.relative_to(scratch).parts]
    properties = {
        "s3proxy.endpoint": f"http://127.0.0.1:{port}",
        "s3proxy.authorization": "aws-v2-or-v4",
        "s3proxy.identity": _KEY,
        "s3proxy.credential": _SECRET,
        "jclouds.provider": "filesystem-nio2",
        "jclouds.identity": "none",
        "jclouds.credential": "none",
        "jclouds.filesystem.basedir": str(data),
    }
    file = directory / "s3proxy.conf"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    command = [str(java.executable), "-Xmx256m", "-cp", os.pathsep.join(map(str, jars))]
    command += ["org.gaul.s3proxy.Main", "--properties", str(file)]
    with _running(command, port) as server:
        yield server


@contextmanager
def versity_gateway(directory: Path, version: str) -> Iterator[S3Server]:
    """Versity's gateway with its files below `directory`."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("no go on PATH, which installs Versity's gateway (1.21 or later)")
    data, sidecar, port = directory / "data", directory / "sidecar", free_port()
    for each in (data, sidecar):
        each.mkdir()
    environment = {**os.environ, "GOBIN": str(directory)}
    subprocess.run(
        [go, "install", f"{_GATEWAY}@{version}"], check=True, timeout=900, env=environment
    )
    command = [str(directory / "versitygw"), "--access", _KEY, "--secret", _SECRET]
    command += ["--port", f"127.0.0.1:{port}", "--quiet", "posix"]
    with _running([*command, "--sidecar", str(sidecar), str(data)], port) as server:
        yield server


@contextmanager
def _running(command: Sequence[str], port: int) -> Iterator[S3Server]:
    server = S3Server(f"http://127.0.0.1:{port}", count())
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(server.answers, deadline_s=_START_S, what="the server answers")
        yield server
    finally:
        process.terminate()
        process.wait(timeout=300)
