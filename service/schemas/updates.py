"""Documents about changes of jobs."""

from typing import Annotated, Any

from pydantic import Field

from service.schemas.document import Body, Document, Flag


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
    preview: Annotated[Flag, Field(description="Show what changes, and change nothing.")] = False
    batches: Annotated[
        int,
        Field(
            ge=0,
            le=1000,
            description="With `preview`: how many of the newest batches are joined again under the "
            "new plan, to show which rows change.",
        ),
    ] = 100
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


class RowExample(Document):
    """A row of a past batch that another plan changes."""

    place: Annotated[str, Field(description="Of its record: topic, partition and offset.")]
    before: Annotated[
        dict[str, Any] | None, Field(description="The row now; null if the new plan adds it.")
    ]
    after: Annotated[
        dict[str, Any] | None, Field(description="The row then; null if the new plan drops it.")
    ]


class RowsPreview(Document):
    """The newest batches of one INSERT, joined under the plan of each and under the new one."""

    sink_table: str
    batches: Annotated[int, Field(description="How many batches were joined again.")] = 0
    oldest_batch: int | None = None
    newest_batch: int | None = None
    records: int = 0
    records_gone: Annotated[int, Field(description="Records that Kafka does not have now.")] = 0
    rows_before: int = 0
    rows_after: int = 0
    rows_changed: Annotated[int, Field(description="Rows with another value in a column.")] = 0
    rows_added: int = 0
    rows_removed: int = 0
    dead_letters_before: int = 0
    dead_letters_after: int = 0
    changed_values: Annotated[dict[str, int], Field(description="Changed rows by column.")] = {}
    new_columns: list[str] = []
    examples: Annotated[list[RowExample], Field(description="The first rows that differ.")] = []
    reason: Annotated[str | None, Field(description="Why batches are left out.")] = None


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
    rows: Annotated[
        list[RowsPreview],
        Field(description="With `preview`, for each INSERT: what changes in rows of past batches."),
    ] = []
