"""What can be wrong with a file, each as an error that says where and what to do."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from joins.plan.errors import DefinitionError, SourceError, SourceUnavailableError

CORRECT = (
    "Correct the file, and the table is read anew by itself; or declare what it has in a new job."
)


def bad_value(file: Path, place: str, reason: str) -> DefinitionError:
    return DefinitionError(f'{place} of file "{file}" cannot be taken: {reason}', hint=CORRECT)


@contextmanager
def readable(file: Path, what: str) -> Iterator[None]:
    """Turn what a reader raises into errors of ours; `what` the file should be.

    Raises:
        SourceUnavailableError: it is not there any more.
        SourceError: it cannot be read, or is something else.
    """
    try:
        yield
    except FileNotFoundError as exc:
        raise SourceUnavailableError(
            f'file "{file}" was removed before it was read',
            hint="Put it there again, or another one: the table is then read anew by itself.",
        ) from exc
    except (pa.ArrowException, OSError) as exc:
        raise SourceError(
            f'file "{file}" cannot be read as {what}: {str(exc)[:300]}',
            hint="Correct 'format' or the file, and let this user read it.",
        ) from exc
