-- error: STOP JOB is not allowed in the script of a job
-- fixed: STOP JOB 'x'; =>
-- with: d_price s_plain out_bigint_string … join_name
STOP JOB 'x';
