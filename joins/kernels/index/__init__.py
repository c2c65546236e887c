"""The lookup index of a dimension: its files, hash tables and lookups."""
