"""What is kept of a job: rows of the store, and the files of its directory."""
