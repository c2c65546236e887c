"""Writes `openapi.json`: `python -m service.api.openapi`."""

import json
import tempfile
from pathlib import Path

from service.api.app import create_app
from service.api.services import Services
from service.config import Settings
from service.jobs.store.store import JobStore
from service.jobs.submit.submission import CatalogTables, Submissions
from service.jobs.supervise.hooks import Hooks, default_hooks
from service.jobs.supervise.supervisor import Supervisor

PATH = Path(__file__).with_name("openapi.json")


def document(hooks: Hooks) -> str:
    with tempfile.TemporaryDirectory(prefix="sluice-openapi-") as directory:
        settings = Settings(data_dir=Path(directory))
        store = JobStore.open("sqlite://")
        supervisor = Supervisor(store, settings, hooks.remove)
        submissions = Submissions(store, settings, hooks)
        tables = CatalogTables(store, settings, submissions)
        services = Services(settings, store, supervisor, submissions, tables)
        description = create_app(services).openapi()
        store.close()
    return json.dumps(description, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def main() -> None:
    PATH.write_text(document(default_hooks()), encoding="utf-8")


if __name__ == "__main__":
    main()
