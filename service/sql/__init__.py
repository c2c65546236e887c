"""User SQL: dialect, catalog, planner; from text to a frozen plan.

Functions of these packages raise `SqlError` for a fault of the script; their docstrings do not
repeat it.
"""
