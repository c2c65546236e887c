"""Expressions: names, types and functions resolved."""
