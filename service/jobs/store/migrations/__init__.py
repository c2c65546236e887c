"""Alembic migrations of the job store; `service.jobs.store.store` runs them at start."""
