-- error: cannot be written
-- fixed: FROM 'timestamp' => FROM 'timestamp' VIRTUAL
-- with: d_small s_key
CREATE TABLE o (x BIGINT, at_ TIMESTAMP_LTZ(3) METADATA FROM 'timestamp') WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
