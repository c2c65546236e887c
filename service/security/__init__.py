"""Tokens, secrets, the audit log and lists of what scripts may reach."""
