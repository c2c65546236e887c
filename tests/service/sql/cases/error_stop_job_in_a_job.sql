-- error: STOP JOB is no part of a job
-- fixed: STOP JOB 'x'; =>
-- with: d_price s_plain out_bigint_string
STOP JOB 'x';
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
