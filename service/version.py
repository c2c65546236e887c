"""The version of this program, and the default address of its control plane."""

from importlib.metadata import PackageNotFoundError, version

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8326


def program_version() -> str:
    try:
        return version("sluice")
    except PackageNotFoundError:
        return "0.1.0+checkout"
