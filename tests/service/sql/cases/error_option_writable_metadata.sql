-- error: cannot be written
-- fixed: FROM 'timestamp' => FROM 'timestamp' VIRTUAL
-- with: d_small s_key … join_k
CREATE TABLE o (x BIGINT, at_ TIMESTAMP_LTZ(3) METADATA FROM 'timestamp') WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json');
