"""Rows, arrays and maps as wholes: equality, order, sets of elements."""
