-- error: keeps its place
STOP JOB 'x' WITH SAVEPOINT;
