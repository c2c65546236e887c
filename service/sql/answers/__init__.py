"""Answers to the questions of a script: EXPLAIN, DESCRIBE, SHOW."""
