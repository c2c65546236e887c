"""Rows of a changelog: read, compacted, digested, written."""
