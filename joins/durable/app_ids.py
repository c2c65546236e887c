"""The ids under which a job commits to Delta tables: each has numbers of its own."""

_REPLAY = ":replay"


def job_app_id(job_id: str, incarnation: str) -> str:
    return f"sluice:{job_id}:{incarnation}"


def output_app_id(app_id: str, insert: int) -> str:
    return app_id if insert == 0 else f"{app_id}:insert-{insert + 1}"


def late_app_id(app_id: str) -> str:
    return f"{app_id}:late"


def replay_app_id(output_id: str) -> str:
    return output_id + _REPLAY


def batches_app_id(app_id: str) -> str:
    return app_id.removesuffix(_REPLAY)
