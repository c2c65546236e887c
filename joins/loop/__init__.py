"""Batches one after the other: their loop, and the turns that a stop waits for."""
