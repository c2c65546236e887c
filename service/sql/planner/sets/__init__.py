"""Jobs of several INSERTs: UNION ALL, statement sets, and the stream that they read."""
