-- error: can be restarted from there
-- fixed:  WITH SAVEPOINT =>
STOP JOB 'x' WITH SAVEPOINT;
