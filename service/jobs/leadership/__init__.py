"""Which of several control planes on one PostgreSQL store leads."""
