"""Sinks: the port that batches write through, and one writer for each kind of output."""
