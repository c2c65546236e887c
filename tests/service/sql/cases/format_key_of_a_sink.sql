-- plan: INTO o kafka(o @ broker:9092, key x and not in the value, json(encode.ignore-null-fields true))
-- with: d_small s_with_id … join_name
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'json.encode.ignore-null-fields' = 'true', 'json.encode.decimal-as-plain-number' = 'true',
    'key.format' = 'json', 'key.fields' = 'x', 'value.fields-include' = 'EXCEPT_KEY');
