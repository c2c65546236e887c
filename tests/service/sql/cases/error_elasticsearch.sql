-- error: unknown connector "elasticsearch-7"
-- fixed: 'elasticsearch-7', 'hosts' = 'http://e:9200', 'index' = 'e' => 'delta', 'path' = 'e'
-- with: orders
CREATE TABLE e (id BIGINT) WITH ('connector' = 'elasticsearch-7', 'hosts' = 'http://e:9200', 'index' = 'e');
INSERT INTO e SELECT id FROM orders;
