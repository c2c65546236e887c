-- error: the job's id in single quotes
STOP JOB x;
