"""The oracle's inputs for a job over `tests.support.shop`, so that experiments need one line."""

from collections.abc import Mapping
from typing import Any

from tests.reliability.oracle import AuditInputs, JoinSpec
from tests.reliability.oracle_history import Database
from tests.support.rig import Rig, RunningJob

ENRICHED = JoinSpec(
    probe_key="user_id",
    columns={
        "user_id": ("probe", "user_id"),
        "item_id": ("probe", "item_id"),
        "gender": ("table", "gender"),
        "name": ("table", "name"),
    },
)


def shop_inputs(
    rig: Rig, job: RunningJob, schema: str, topic: str, path: str, **given: Any
) -> AuditInputs:
    values: Mapping[str, Any] = {
        "bootstrap_servers": rig.kafka.bootstrap_servers,
        "topic": topic,
        "source": Database(
            rig.mariadb.host,
            rig.mariadb.port,
            "root",
            rig.mariadb.root_password,
            schema,
            "user_info",
        ),
        "primary_key": "user_id",
        "job_directory": job.directory,
        "dimension": "user_info",
        "output": rig.output(path),
        "dead_letters": job.directory / "dead_letters",
        "join": ENRICHED,
    }
    return AuditInputs(**{**values, **given})
