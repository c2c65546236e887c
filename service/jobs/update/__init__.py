"""Updates of jobs: what may differ between two plans of a job, and why not."""
