"""Jobs: their states, their store, their supervisor and their runner."""
