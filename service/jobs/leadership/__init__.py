"""Which of several control planes on one PostgreSQL store leads, and since when (ADR-0093)."""
