"""Documents about changes of jobs."""

from typing import Annotated

from pydantic import Field

from service.schemas.document import Body, Document, Flag, default


class JobUpdate(Body):
    """Another plan for a job: of a script, or an older one of the job."""

    sql: str | None = default(None, "The changed script; leave it out to return to an older plan.")
    to_plan: Annotated[
        int | None,
        Field(ge=1, description="Number of the older plan; the one before, if `sql` is left out."),
    ] = None
    preview: Flag = default(False, "Show what changes, and change nothing.")
    of_plan: Annotated[
        int | None,
        Field(ge=1, description="Refuse unless this is the job's plan, such as that of a preview."),
    ] = None


class ChangeView(Document):
    """One difference between two plans of a job."""

    kind: str = Field(description="In kebab case, such as `filter`.")
    of: str = Field(description="What differs, such as the name of a column.")
    accepted: bool
    reason: str | None = default(None, "Why it is refused.")
    hint: str | None = None


class UpdateView(Document):
    """What an update changes, or has changed."""

    job_id: str
    plan: int = Field(description="Number of the job's plan now.")
    new_plan: int | None = default(None, "Number that the update gives; null if nothing differs.")
    applied: bool = Field(description="The job has the plan; its runner takes it after its batch.")
    accepted: bool = Field(description="False if a change is refused.")
    changes: list[ChangeView]
    warnings: list[str] = []
