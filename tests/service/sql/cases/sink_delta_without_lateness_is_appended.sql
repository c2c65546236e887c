-- plan: INTO o delta(o) NOT NULL at, k
-- with: s_event_time … count_minutes
CREATE TABLE o (at TIMESTAMP(3), k BIGINT, x BIGINT, PRIMARY KEY (at, k) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'o');
