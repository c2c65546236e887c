"""Expressions of a plan on Arrow columns."""
