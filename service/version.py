"""Which version of this program runs."""

from importlib.metadata import PackageNotFoundError, version


def program_version() -> str:
    try:
        return version("sluice")
    except PackageNotFoundError:
        return "0.1.0+checkout"
