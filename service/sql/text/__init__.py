"""The text of a script: tokens, positions, excerpts and errors that point into it."""
