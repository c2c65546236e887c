"""Puts routes, problem documents and guards together."""

from collections.abc import Callable
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.openapi.utils import get_openapi

from service.api.http import problems
from service.api.http.access import Rules, describe, secure
from service.api.http.checks import check_accept, check_body, check_query
from service.api.http.guard import Gate, Guard, Heads
from service.api.routes import (
    admin,
    catalog,
    dead_letters,
    events,
    flink,
    inspection,
    jobs,
    metrics,
    program,
    progress,
    runner_requests,
    tables,
    verification,
)
from service.api.routes.events import EventHub
from service.api.routes.metrics import RequestCounters, RequestMetrics
from service.api.services import Services
from service.schemas.jobs import Problem

_ROUTERS = (
    jobs.router,
    progress.router,
    verification.freshness_router,
    events.router,
    runner_requests.router,
    dead_letters.router,
    inspection.router,
    verification.router,
    tables.router,
    catalog.router,
    flink.router,
    catalog.statements_router,
    metrics.router,
    program.router,
    admin.tokens_router,
    admin.secrets_router,
    program.page_router,
)


def create_app(services: Services, *, closing: Callable[[], bool] = lambda: False) -> FastAPI:
    """The REST API over `services`; starts nothing. Streams end when `closing` returns True."""
    app = FastAPI(
        title="Sluice",
        version="1",
        summary="Joins a stream with a table that is still being copied.",
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(check_accept), Depends(check_query), Depends(check_body)],
    )
    app.state.services = services
    app.state.requests = RequestCounters()
    app.state.look_at_store = program.SharedProbe(services.store.database.check)
    app.state.events = EventHub(services.store, closing=closing)
    for router in _ROUTERS:
        app.include_router(router)
    problems.register(app)
    rules = secure(app)  # after the last router
    app.state.guard = Gate(
        services.settings, services.store.tokens, rules, services.leadership.require
    )
    app.add_middleware(Heads)
    app.add_middleware(Guard, gate=app.state.guard)
    app.add_middleware(RequestMetrics, counters=app.state.requests)  # the outermost one
    app.openapi = lambda: _document(app, rules)  # type: ignore[method-assign] # FastAPI's own way to extend it
    return app


def _document(app: FastAPI, rules: Rules) -> dict[str, Any]:
    if app.openapi_schema is not None:
        return app.openapi_schema
    document = get_openapi(
        title=app.title, version=app.version, summary=app.summary, routes=app.routes
    )
    schemas = document["components"]["schemas"]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["Problem"] = Problem.model_json_schema()
    reference = {"schema": {"$ref": "#/components/schemas/Problem"}}
    answer = {"description": "A problem", "content": {problems.MEDIA_TYPE: reference}}
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = answer
    describe(document, rules)
    app.openapi_schema = document
    return document
