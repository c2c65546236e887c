-- error: replaces and deletes rows by key, and so does INSERT INTO "o", of the same table
-- fixed: (id) NOT ENFORCED) WITH ('connector' = 'delta' => (id, part) NOT ENFORCED) WITH ('connector' = 'delta'
-- fixed: SELECT id, name FROM => SELECT id, 'a' FROM
-- fixed: SELECT id, 'y' FROM => SELECT id, 'b' FROM
CREATE TABLE u (id BIGINT, name STRING, n INT, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 'u', 'properties.bootstrap.servers' = 'b:1', 'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE o (id BIGINT, part STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'o');
INSERT INTO o SELECT id, name FROM u WHERE n > 3;
INSERT INTO o SELECT id, 'y' FROM u WHERE n <= 3;
