"""Schemas of records inside a task, by a connection that its process keeps."""

from collections.abc import Callable

from joins.adapters.registry import shared_schemas
from joins.plan.connections import RegistryOptions
from joins.worker.staging import telling_cause


def task_schemas(options: RegistryOptions) -> Callable[[int], str | None]:
    """Asks a registry for the schema of a number.

    What that raises reaches the driver from `joins.worker.staging`:

    Raises:
        SourceError: a certificate for the registry cannot be used.
    """

    def schema_of(number: int) -> str | None:
        with telling_cause():
            return shared_schemas(options)(number)

    return schema_of
