"""What a source's process says of an error reaches the job as the same error."""

import pytest

from joins.plan.errors import SourceError
from joins.source import coordinator


@pytest.mark.parametrize("kind", [SourceError, *coordinator._ERRORS.values()])
def test_every_error_of_a_source_is_made_of_what_its_process_says(kind):
    error = kind("topic is gone", hint="Create it.", detail="UnknownTopicId")
    assert (error.message, error.hint, error.detail) == (
        "topic is gone",
        "Create it.",
        "UnknownTopicId",
    )
