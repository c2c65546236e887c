-- error: table "s" never ends, but the job runs in batch mode
-- fixed: ('connector' = 'datagen') => ('connector' = 'datagen', 'number-of-rows' = '5')
-- with: d_small out_bigint … join_k
SET 'execution.runtime-mode' = 'batch';
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH ('connector' = 'datagen');
