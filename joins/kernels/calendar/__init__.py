"""Dates, times and intervals on columns: zones, units, parts, patterns of Java."""
