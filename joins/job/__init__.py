"""One job's life: its parts, queries, opening, upkeep and status."""
