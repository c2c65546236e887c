"""`/v1/jobs:validate` and `/v1/jobs:plan`: what a submission would do, without doing it."""

import orjson
from fastapi import APIRouter

from service.api.http.access import OPERATOR
from service.api.routes.jobs import Injected
from service.api.views import submission_warning
from service.schemas.jobs import Submission
from service.schemas.progress import PlanView, ScriptCheck, Validation
from service.sql.answers.explain import explain

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], dependencies=[OPERATOR])


@router.post(":validate", summary="Check a script")
def validate_script(body: ScriptCheck, services: Injected) -> Validation:
    """Plan the script and, unless `outside` is false, check all that it names; nothing is kept."""
    drafted = services.submissions.draft(
        body.sql, body.name, outside=body.outside, append=body.append
    )
    return Validation(
        valid=True,
        name=drafted.plan.name,
        outside=body.outside,
        warnings=[submission_warning(text) for text in drafted.warnings],
    )


@router.post(":plan", summary="Show the plan of a script")
def plan_script(body: Submission, services: Injected) -> PlanView:
    """Plan the script; nothing outside is touched, and nothing is kept."""
    drafted = services.submissions.draft(body.sql, body.name, outside=False)
    lines = explain(drafted.plan)
    return PlanView(
        name=drafted.plan.name,
        lines=lines,
        text="\n".join(lines),
        warnings=[submission_warning(text) for text in drafted.warnings],
        plan=orjson.loads(services.submissions.dump(drafted.plan)),
    )
