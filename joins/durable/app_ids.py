"""The ids under which a job commits to Delta tables: each has numbers of its own."""

_REPLAY = ":replay"


def job_app_id(job_id: str, incarnation: str) -> str:
    """Of a job's commits, in one life of its checkpoint."""
    return f"sluice:{job_id}:{incarnation}"


def output_app_id(app_id: str, insert: int) -> str:
    """Of the commits that an INSERT makes to its output: two may write to the same table."""
    return app_id if insert == 0 else f"{app_id}:insert-{insert + 1}"


def late_app_id(app_id: str) -> str:
    """Of the commits of a job's late records."""
    return f"{app_id}:late"


def replay_app_id(output_id: str) -> str:
    """Of the commits with rows of replayed dead letters; `output_id` is that of the batches'."""
    return output_id + _REPLAY


def batches_app_id(app_id: str) -> str:
    """The id of the batches' commits, also of that for replayed dead letters."""
    return app_id.removesuffix(_REPLAY)
