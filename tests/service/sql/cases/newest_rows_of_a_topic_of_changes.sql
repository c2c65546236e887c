-- plan: INNER JOIN d AS d debezium-json(d @ broker:9092) [id BIGINT NOT NULL, name STRING; key id] ON s.k = d.id
-- with: s_event_time out_bigint
CREATE TABLE d (id BIGINT, name STRING, p AS PROCTIME(), PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'kafka', 'topic' = 'd', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json'
);
CREATE VIEW newest AS SELECT id, name FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY p DESC) AS n FROM d
) WHERE n = 1;
INSERT INTO o SELECT s.k FROM s JOIN newest FOR SYSTEM_TIME AS OF s.p ON s.k = newest.id;
