"""Documents about changes of jobs."""

from typing import Annotated

from pydantic import Field

from service.schemas.document import Body, Document


class JobUpdate(Body):
    """Another plan for a job: of a script, or an older one of the job."""

    sql: Annotated[
        str | None,
        Field(description="The changed script; leave it out to return to an older plan."),
    ] = None
    to_plan: Annotated[
        int | None,
        Field(ge=1, description="Number of the older plan; the one before, if `sql` is left out."),
    ] = None
    preview: Annotated[bool, Field(description="Show what changes, and change nothing.")] = False
    of_plan: Annotated[
        int | None,
        Field(ge=1, description="Refuse unless this is the job's plan, such as that of a preview."),
    ] = None


class ChangeView(Document):
    """One difference between two plans of a job."""

    kind: Annotated[str, Field(description="In kebab case, such as `filter`.")]
    of: Annotated[str, Field(description="What differs, such as the name of a column.")]
    accepted: bool
    reason: Annotated[str | None, Field(description="Why it is refused.")] = None
    hint: str | None = None


class UpdateView(Document):
    """What an update changes, or has changed."""

    job_id: str
    plan: Annotated[int, Field(description="Number of the job's plan now.")]
    new_plan: Annotated[
        int | None, Field(description="Number that the update gives; null if nothing differs.")
    ] = None
    applied: Annotated[
        bool, Field(description="The job has the plan; its runner takes it after its batch.")
    ]
    accepted: Annotated[bool, Field(description="False if a change is refused.")]
    changes: list[ChangeView]
    warnings: list[str] = []
