"""The topics of the stream: their guards, bounds, retention and open transactions."""
