"""A source's process and its runner: what they say to each other."""
