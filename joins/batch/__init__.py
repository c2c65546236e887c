"""The micro-batches of a job: planned, pinned, run in stages, committed."""
