"""Tables in Azure's Blob storage, as Azurite plays it."""

from pathlib import Path

import pytest

from tests.support.azurite import azurite
from tests.support.store_tables import check_a_table_of_a_store

pytestmark = pytest.mark.experiment


def test_a_table_in_azure_is_proven_written_once_fenced_and_kept_small(
    tmp_path: Path, processes: None
) -> None:
    with azurite(tmp_path) as server:
        check_a_table_of_a_store(server.path("shop/out"))
