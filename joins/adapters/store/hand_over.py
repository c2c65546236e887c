"""Which durable files are stored, from a runner to the processes of its sources."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from joins.adapters.store.path import path_as_json, path_from_json
from joins.durable.stored import StoredFiles, all_stored, keep_stored


def stored_as_json() -> list[dict[str, Any]]:
    return [
        {
            "directory": str(files.directory),
            "place": path_as_json(files.place),
            "epoch": files.epoch,
        }
        for files in all_stored()
    ]


def store_alike(documents: Iterable[Mapping[str, Any]]) -> None:
    """From now on store what `stored_as_json` described."""
    for each in documents:
        place = path_from_json(each["place"])
        assert not isinstance(place, Path), "what is stored is in a store"
        keep_stored(StoredFiles(Path(each["directory"]), place, each["epoch"]))
