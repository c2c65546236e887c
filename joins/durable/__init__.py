"""What outlives a process.

Checkpoint, pins, leases, requests, and the faults that a restart finds again.
"""
