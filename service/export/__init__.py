"""Tells other systems about jobs: lineage as OpenLineage, phases and batches as OpenTelemetry.

An exporter is a process of its own that reads the REST API, as any client does. Jobs and control
plane do not know of it: whatever happens to it or to its receiver, no job waits, fails or slows
down. The packages that it needs are extras, `sluice[openlineage]` and `sluice[otel]`.
"""
