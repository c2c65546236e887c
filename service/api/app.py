"""Puts routes, problem documents and guards together."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from service.api import (
    acknowledgements,
    dead_letters,
    health,
    inspection,
    jobs,
    problems,
    statements,
)
from service.api.guard import LoopbackGuard
from service.api.jobs import Services
from service.api.schemas import Problem


def create_app(services: Services) -> FastAPI:
    """The REST API over `services`; starts and stops nothing."""
    app = FastAPI(
        title="Sluice",
        version="1",
        summary="Joins a stream with a table that is still being copied.",
        docs_url=None,
        redoc_url=None,
    )
    app.state.services = services
    app.include_router(jobs.router)
    app.include_router(acknowledgements.router)
    app.include_router(dead_letters.router)
    app.include_router(inspection.router)
    app.include_router(statements.router)
    app.include_router(health.router)
    problems.register(app)
    app.add_middleware(LoopbackGuard, host=services.settings.host)
    app.openapi = lambda: _document(app)  # type: ignore[method-assign] # FastAPI's own way to extend it
    return app


def _document(app: FastAPI) -> dict[str, Any]:
    """OpenAPI 3.1 in which every error is a problem document."""
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
    app.openapi_schema = document
    return document
