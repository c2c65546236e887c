"""Alembic migrations of the job store; `service.jobs.store` runs them at start."""
