from service.api.openapi import PATH, document
from tests.support.control_plane import HOOKS


def test_committed_description_is_that_of_the_code():
    assert PATH.read_text() == document(HOOKS), "run python -m service.api.openapi"
