"""Answers about a job from its files and its runner: rows, history, why it waits."""
