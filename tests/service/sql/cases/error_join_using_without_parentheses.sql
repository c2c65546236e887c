-- error: expected a list of columns, found "id"
-- fixed: USING id => USING (id)
-- with: d_priced out_bigint
CREATE TABLE s (id BIGINT, p AS PROCTIME()) WITH ('connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
INSERT INTO o SELECT id FROM s JOIN d FOR SYSTEM_TIME AS OF s.p USING id;
