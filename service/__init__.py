"""SQL, jobs, REST, command line and the embedded runtime."""
