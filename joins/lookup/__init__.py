"""Where a dimension's rows are found.

The files that indexes are built from: the changelog, and the folds that can stand in for it.
"""
