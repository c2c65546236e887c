"""Formats of topics, by Flink's names: keys and values into columns, and columns into both."""
