"""Runners as processes: started, watched, ended, and what they made removed."""
