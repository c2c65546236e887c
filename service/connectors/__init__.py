"""Connectors at work: for each kind of source and sink its limits, logins, checks and runtime."""
