-- error: the job's id in single quotes
-- fixed: JOB x => JOB 'x'
STOP JOB x;
