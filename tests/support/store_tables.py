"""What a table in a store must keep, whatever the store is."""

import pyarrow as pa
import pytest

from joins.adapters.delta.log import DeltaLog, create_table
from joins.adapters.store_path import StorePath, prove_conditional_puts
from joins.kernels.probe.files import FileOrigin
from joins.plan.errors import FencedError

_SCHEMA = pa.schema([("id", pa.int64())])


def check_a_table_of_a_store(root: StorePath) -> None:
    """Batches are there once, an older writer is fenced, log and files are kept small."""
    prove_conditional_puts(root)
    create_table(root, _SCHEMA, creator="job")
    log = DeltaLog(root, "job")
    log.commit_epoch(1)
    for batch in range(3):
        with log.shared.stage(_SCHEMA, FileOrigin(1, batch, 0, 0)) as stage:
            stage.write(pa.record_batch([[batch]], schema=_SCHEMA))
            file = stage.finish()
        version = log.commit(batch, 1, [file], {})
        assert log.commit(batch, 1, [file], {}) == version
    DeltaLog(root, "job").commit_epoch(2)
    with pytest.raises(FencedError):
        log.commit(3, 1, [], {})
    rows = log.files.read_files(log.files.files_at(log.version()))
    assert sorted(i for each in rows for i in each.column("id").to_pylist()) == [0, 1, 2]
    log.upkeep.make_checkpoint(log.version())
    assert log.upkeep.remove_log_before(log.version()) == 5
    assert DeltaLog(root, "job").batches.last_batch() == 2
    assert log.upkeep.vacuum(0) == 0
