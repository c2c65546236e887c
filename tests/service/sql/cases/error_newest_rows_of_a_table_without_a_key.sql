-- error: which has no PRIMARY KEY and is no topic of rows
-- fixed: name STRING) => name STRING, PRIMARY KEY (id) NOT ENFORCED)
-- with: s_plain out_bigint_string
CREATE TABLE f (id BIGINT, name STRING) WITH ('connector' = 'filesystem', 'path' = 'f', 'format' = 'json');
CREATE VIEW v AS SELECT id, name FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY PROCTIME() DESC) AS n FROM f) WHERE n = 1;
INSERT INTO o SELECT s.k, v.name FROM s JOIN v FOR SYSTEM_TIME AS OF s.p ON s.k = v.id;
