-- warning: Option "standard-error" of table "o" has no effect: rows go to the log of the job, in the order of their batches.
-- with: s_key d_small … join_k
CREATE TABLE o (x BIGINT) WITH ('connector' = 'print', 'standard-error' = 'true', 'sink.parallelism' = '1');
