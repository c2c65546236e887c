"""What is answered to a script that is no job: EXPLAIN, DESCRIBE, SHOW, and what lasts of it."""
