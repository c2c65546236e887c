"""A control plane in a process of its own, so that nothing of it is loaded in the benchmark's."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import httpx
import psutil

from tests.support.wait import wait_until


@contextmanager
def plane_process(
    real: str, port: int, variables: Mapping[str, str]
) -> Iterator[tuple[httpx.Client, psutil.Process]]:
    """A client of `tests.bench.api_plane`, and its process.

    Args:
        real: the name of the job that has a real runner.
        port: where it listens.
        variables: its settings.
    """
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.api_plane", real], env={**os.environ, **variables}
    )
    try:
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", timeout=60.0, trust_env=False
        ) as client:
            wait_until(lambda: _is_ready(client, child), deadline_s=120, what="control plane")
            yield client, psutil.Process(child.pid)
    finally:
        child.terminate()
        child.wait(timeout=120)


def _is_ready(client: httpx.Client, child: "subprocess.Popen[bytes]") -> bool:
    if child.poll() is not None:
        raise RuntimeError(f"control plane ended with {child.returncode}")
    try:
        return client.get("/readyz").is_success
    except httpx.TransportError:
        return False
