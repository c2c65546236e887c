"""The answers of a control plane as they come, for tests that look at its documents."""

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Self

from service.client.transport import ConflictError, Transport
from service.security.tokens import Credentials
from tests.support.wait import wait_until


class Documents:
    """Asks a control plane, each time once."""

    def __init__(self, url: str, credentials: Credentials | None = None) -> None:
        self.url = url
        self._transport = Transport(url, credentials or Credentials(), attempts=1)

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get(self, path: str, **query: object) -> dict[str, Any]:
        return self._transport.send("GET", path, params=query).json()

    def _want(self, job_id: str, what: str) -> dict[str, Any]:
        return self._transport.send("POST", f"/v1/jobs/{job_id}:{what}").json()

    def version(self) -> dict[str, Any]:
        return self.get("/v1/version")

    def submit(
        self, sql: str, name: str | None = None, *, idempotency_key: str | None = None
    ) -> dict[str, Any]:
        """The submitted job; a name that another job has gets a number behind it."""
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        for number in count(1):
            named = {} if name is None else {"name": name if number == 1 else f"{name} {number}"}
            body = {"sql": sql, **named}
            try:
                return self._transport.send("POST", "/v1/jobs", json=body, headers=headers).json()
            except ConflictError as exc:
                if name is None or idempotency_key is not None or "has the name" not in str(exc):
                    raise
        raise AssertionError("numbers do not end")

    def validate(self, sql: str) -> dict[str, Any]:
        return self._transport.send("POST", "/v1/jobs:validate", json={"sql": sql}).json()

    def jobs(self) -> list[dict[str, Any]]:
        page = self.get("/v1/jobs", limit=500)
        assert page["next_cursor"] is None
        return page["items"]

    def job(self, job_id: str) -> dict[str, Any]:
        return self.get(f"/v1/jobs/{job_id}")

    def when(
        self,
        job_id: str,
        that: Callable[[dict[str, Any]], object] = lambda _: True,
        **wanted: object,
    ) -> dict[str, Any]:
        """The job, once `that` is true of it and its members are as `wanted`."""

        def found() -> dict[str, Any]:
            job = self.job(job_id)
            is_so = all(job[name] == value for name, value in wanted.items()) and that(job)
            return job if is_so else {}

        return wait_until(found, what=f"job {job_id} with {wanted}")

    def start(self, job_id: str) -> dict[str, Any]:
        return self._want(job_id, "start")

    def stop(self, job_id: str) -> dict[str, Any]:
        return self._want(job_id, "stop")

    def pause(self, job_id: str) -> dict[str, Any]:
        return self._want(job_id, "pause")

    def remove(self, job_id: str, *, output: bool = False) -> Mapping[str, Any] | None:
        answer = self._transport.send("DELETE", f"/v1/jobs/{job_id}", params={"output": output})
        return answer.json() if answer.content else None

    def events(self, job_id: str) -> list[dict[str, Any]]:
        return self.get(f"/v1/jobs/{job_id}/events", limit=500)["items"]

    def watermarks(self, job_id: str) -> dict[str, Any]:
        return self.get(f"/v1/jobs/{job_id}/watermarks")

    def log(self, job_id: str) -> str:
        return self._transport.send("GET", f"/v1/jobs/{job_id}/log").text
