-- error: Leave the column out or rename it in the table.
-- fixed:  _partition INT, =>
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT, _partition INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'd');
