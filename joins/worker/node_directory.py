"""Directories on whatever node looks at them: the same name means another place on each."""

import os
import re
import socket
import tempfile
from pathlib import Path

from joins.plan.errors import IndexDirectoryError

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def on_this_node(directory: Path) -> Path:
    """`directory` with `{host}` as this node's name and `{NAME}` as this process's variable NAME.

    Raises:
        IndexDirectoryError: a variable is not set here.
    """
    return Path(_PLACEHOLDER.sub(_value, str(directory)))


def spill_directory() -> Path:
    of_executor = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    return Path(of_executor or tempfile.gettempdir())


def _value(match: re.Match[str]) -> str:
    name = match.group(1)
    value = socket.gethostname() if name == "host" else os.environ.get(name)
    if not value:
        raise IndexDirectoryError(
            f"variable {name}, which SLUICE_INDEX_DIR names, is not set on node "
            f'"{socket.gethostname()}"',
            hint="Set it there, for instance with spark.executorEnv, or name another directory.",
        )
    return value
