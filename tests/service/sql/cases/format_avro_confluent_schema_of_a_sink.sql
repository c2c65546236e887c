-- plan: INTO o kafka(o @ broker:9092, avro-confluent(schema {"type":"record","name":"Order","namespace":"shop","doc":"theirs","fields":[{"name":"k","type":["null","long"],"default":null},{"name":"name","type":["null",{"type":"string","avro.java.string":"String"}]}]}, schemas http://registry:8081))
-- with: d_small s_with_id … join_name
CREATE TABLE o (k BIGINT, name STRING) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'avro-confluent', 'avro-confluent.url' = 'http://registry:8081',
    'avro-confluent.schema' = '{"type":"record","name":"Order","namespace":"shop","doc":"theirs","fields":[{"name":"k","type":["null","long"],"default":null},{"name":"name","type":["null",{"type":"string","avro.java.string":"String"}]}]}');
