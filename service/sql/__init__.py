"""User SQL: dialect, catalog, planner; from text to a frozen plan."""
