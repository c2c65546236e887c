"""The program `sluice`: sees that the packages it imports are its own, then runs the command line.

`service`, `joins` and `watermark` are plain words, which another project may use, too. An installed
environment has this file as the module `sluice`, a name of its own, so that it is found whatever
stands in the way of the others. Programs import the client from it: `from sluice import Sluice`.
"""

import csv
import io
import json
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

_NAME = "sluice"
_PACKAGES = ("service", "joins", "watermark")


def main() -> None:
    """Run the command line; exit code 1 if its packages are another project's."""
    fault = collision()
    if fault is not None:
        sys.stderr.write(f"error: {fault[0]}\nhint: {fault[1]}\n")
        raise SystemExit(1)
    from service.cli.main import main as run  # not before its packages are known to be ours

    run()


def __getattr__(name: str) -> object:
    """A class of `service.client`, when the packages are known to be ours."""
    if name.startswith("_") or name == "pytest_plugins":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    fault = collision()
    if fault is not None:
        raise ImportError(f"{fault[0]}. {fault[1]}")
    from service import client

    if name not in client.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(client, name)


def collision() -> tuple[str, str] | None:
    """The fault and the remedy if other packages shadow ours; None if they are ours."""
    homes = {name: _home(name) for name in _PACKAGES}
    try:
        own = distribution(_NAME)
    except PackageNotFoundError:
        own = None
    root = _root(own)
    for name, home in homes.items():
        if home != root / name:
            return (
                f'package "{name}" is imported from "{home}" and not from "{root / name}": another '
                "project's package has the same name",
                "Start sluice with PYTHONPATH unset, or install it into an environment of its own "
                "(pipx install, or python -m venv).",
            )
    changed = None if own is None else _changed(own)
    if changed is not None:
        return (
            f'file "{root / changed}" is not the one that sluice has installed'
            f"{_whose(changed)}: a package of the same name has been installed over it",
            "Install sluice into an environment of its own (pipx install, or python -m venv).",
        )
    return None


def _root(own: Distribution | None) -> Path:
    """Where our packages are installed, or the checkout."""
    if own is None:
        return Path(__file__).resolve().parents[1]
    origin = json.loads(own.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        return Path(unquote(urlsplit(origin["url"]).path)).resolve()
    return Path(str(own.locate_file(""))).resolve()


def _home(name: str) -> Path | None:
    spec = find_spec(name)
    places = [] if spec is None else list(spec.submodule_search_locations or [])
    return Path(places[0]).resolve() if places else None


def _changed(own: Distribution) -> str | None:
    """The first of our modules whose size differs from the installed one."""
    record = own.read_text("RECORD") or ""
    for path, _, size in csv.reader(io.StringIO(record)):
        if size and path.endswith(".py") and path.split("/")[0] in _PACKAGES:
            file = Path(str(own.locate_file(path)))
            if not file.exists() or file.stat().st_size != int(size):
                return path
    return None


def _whose(path: str) -> str:
    for other in distributions():
        name = other.metadata["Name"]
        if name != _NAME and any(str(file) == path for file in other.files or ()):
            return f' but that of "{name}" {other.version}'
    return ""


if __name__ == "__main__":
    main()
