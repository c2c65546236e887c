"""A dimension at run time: its changelog, fold, indexes, versions and upkeep."""
