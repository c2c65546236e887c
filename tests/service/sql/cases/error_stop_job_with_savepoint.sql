-- error: can be restarted from there
STOP JOB 'x' WITH SAVEPOINT;
