"""`/metrics`: jobs, tables and requests in the text format of Prometheus."""

import time
from collections.abc import Iterator

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.http.access import VIEWER
from service.api.job_metrics import MOST_JOBS, job_metrics, leadership_metrics
from service.api.routes.jobs import Injected, Services
from service.jobs.leadership import ControlPlaneRole

_METHODS = frozenset({"GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"})
_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
router = APIRouter(tags=["health"], dependencies=[VIEWER])


class RequestCounters:
    """Requests of one application, by the route's template: a path of strangers is no label."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = Counter(
            "sluice_http_requests",
            "Requests that were answered.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "sluice_http_request_seconds",
            "From a request to the beginning of its answer.",
            ("method", "route"),
            buckets=_BUCKETS_S,
            registry=self.registry,
        )

    def count(self, scope: Scope, status: int, seconds: float) -> None:
        """A request has been answered."""
        method = scope["method"] if scope["method"] in _METHODS else "other"
        route = getattr(scope.get("route"), "path", None) or "none"
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)


class RequestMetrics:
    """Counts what passes; answers nothing itself."""

    def __init__(self, app: ASGIApp, *, counters: RequestCounters) -> None:
        self._app = app
        self._counters = counters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on and look at the answer's status."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, counted = time.perf_counter(), False

        async def send_and_count(message: Message) -> None:
            nonlocal counted
            if message["type"] == "http.response.start":
                counted = True
                self._counters.count(scope, message["status"], time.perf_counter() - started)
            await send(message)

        try:
            await self._app(scope, receive, send_and_count)
        except Exception:
            if not counted:
                self._counters.count(scope, 500, time.perf_counter() - started)
            raise


class JobCollector(Collector):
    """The metrics of jobs as they are at the moment of a scrape."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def describe(self) -> list[Metric]:
        """Nothing: a registry would collect once more to learn the names."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Read the store and the newest report of each job, which only one control plane tells."""
        leadership = self._services.leadership
        yield from leadership_metrics(leadership)
        if leadership.role is not ControlPlaneRole.LEADER:
            return
        store = self._services.store
        jobs = store.page(limit=MOST_JOBS)
        yield from job_metrics(map(self._services.detail, jobs), store.count_by_state())


@router.get("/metrics", summary="Metrics for Prometheus", response_class=PlainTextResponse)
def show_metrics(request: Request, services: Injected) -> Response:
    """Jobs, tables, requests and this process."""
    jobs = CollectorRegistry()
    jobs.register(JobCollector(services))
    counters: RequestCounters = request.app.state.requests
    text = generate_latest(jobs) + generate_latest(counters.registry)
    return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)
