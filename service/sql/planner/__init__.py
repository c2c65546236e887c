"""From statements to the frozen plan of a job."""
