"""`sluice doctor`: checks of a job, its machine and what it talks to."""
