-- plan: INNER JOIN rates AS r debezium-json(rates @ broker:9092) [currency STRING NOT NULL, conversion_rate DECIMAL(32, 2), at TIMESTAMP(3) METADATA timestamp; key currency] ON o.currency = r.currency
-- with: orders_of_instants
CREATE TABLE rates (
    currency STRING, conversion_rate DECIMAL(32, 2), at TIMESTAMP(3) METADATA FROM 'timestamp',
    PRIMARY KEY (currency) NOT ENFORCED
) WITH (
    'topic' = 'rates', 'properties.bootstrap.servers' = 'broker:9092',
    'connector' = 'kafka', 'format' = 'debezium-json'
);
CREATE TABLE o (id BIGINT, at TIMESTAMP(3)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT o.id, r.at FROM orders AS o
JOIN rates FOR SYSTEM_TIME AS OF o.proc_time AS r ON o.currency = r.currency;
