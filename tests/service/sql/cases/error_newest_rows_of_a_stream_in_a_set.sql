-- error: which a statement set of several INSERTs cannot
-- fixed: EXECUTE STATEMENT SET BEGIN INSERT => INSERT
-- fixed:  INSERT INTO o SELECT id FROM orders; END; => 
-- with: orders
CREATE TABLE k (id BIGINT, currency STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'k', 'properties.bootstrap.servers' = 'b:1', 'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE o (id BIGINT) WITH ('connector' = 'blackhole');
EXECUTE STATEMENT SET BEGIN INSERT INTO k SELECT id, currency FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY proc_time DESC) AS n FROM orders) WHERE n = 1; INSERT INTO o SELECT id FROM orders; END;
