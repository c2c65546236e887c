-- plan: INNER JOIN O AS O filesystem(x, json, read once) [id BIGINT NOT NULL, name STRING; key id] ON s.k = O.id | INTO o blackhole()
-- with: s_plain out_bigint_string
CREATE TABLE O (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json');
INSERT INTO o SELECT s.k, O.name FROM s JOIN O FOR SYSTEM_TIME AS OF s.p ON s.k = O.id;
