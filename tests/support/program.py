"""The command line run in this process: a process of its own loads modules for most of a second."""

import io
import signal
import subprocess
import sys

import pytest

from service.cli import main as cli


def run_program(
    *arguments: str, given: bytes = b"", **variables: str
) -> "subprocess.CompletedProcess[bytes]":
    """What `sluice` with `arguments` says and how it ends, as `subprocess.run` tells it.

    Args:
        arguments: behind the program's name.
        given: its standard input.
        variables: of its environment, on top of ours.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    before = signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["sluice", *arguments])
        patch.setattr(sys, "meta_path", [*sys.meta_path])  # it leaves packages out
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given), "utf-8"))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        try:
            cli.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            signal.signal(signal.SIGTERM, before)
    said, talk = (stream.buffer.getvalue() for stream in (out, err))
    return subprocess.CompletedProcess(["sluice", *arguments], code, said, talk)
