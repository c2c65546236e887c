"""From a script to a stored job, and what is checked on the way."""
