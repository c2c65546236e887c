-- error: connector "kafka" has no option "connector.sink.rolling"
-- fixed: , 'connector.sink.rolling' = '1' =>
-- with: … out_bigint
CREATE TABLE s (k BIGINT) WITH (
    'connector.type' = 'kafka', 'connector.topic' = 's', 'format.type' = 'json',
    'connector.properties.bootstrap.servers' = 'broker:9092', 'connector.sink.rolling' = '1'
);
INSERT INTO o SELECT k FROM s;
