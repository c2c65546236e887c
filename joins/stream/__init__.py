"""The topic of the stream: its guards, bounds, retention and open transactions."""
