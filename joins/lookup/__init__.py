"""Where a dimension's rows are found.

What indexes are made from, and tables that are sent to every worker.
"""
