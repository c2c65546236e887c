-- error: two columns are ROWs that Avro calls "record_r_x"
-- fixed: (r ROW<x ROW<a INT>>, r_x ROW<b INT>) => (r ROW<x ROW<a INT>>, rx ROW<b INT>)
-- with: d_small s_with_id
CREATE TABLE o (r ROW<x ROW<a INT>>, r_x ROW<b INT>) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'avro-confluent', 'avro-confluent.url' = 'http://registry:8081');
INSERT INTO o SELECT CAST(NULL AS ROW<x ROW<a INT>>), CAST(NULL AS ROW<b INT>) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
