-- declares: shared people (id, name) key (id)
CREATE SHARED TABLE IF NOT EXISTS people (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED)
  WITH ('connector' = 'delta', 'path' = 'people');
