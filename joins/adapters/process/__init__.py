"""The processes of sources: how they are forked, and their protocol with the runner."""
