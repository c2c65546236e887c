"""One job's life: its session, its queries, its opening and its status."""
