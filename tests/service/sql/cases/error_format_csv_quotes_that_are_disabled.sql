-- error: quote-character is set, but quotes are disabled
-- fixed: , 'csv.quote-character' = '''' => 
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'csv', 'csv.disable-quote-character' = 'true', 'csv.quote-character' = ''''
);
