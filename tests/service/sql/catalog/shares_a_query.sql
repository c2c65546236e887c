-- error: CREATE SHARED TABLE … AS is not supported
-- fixed: TABLE v WITH => TABLE v (user_id BIGINT, PRIMARY KEY (user_id) NOT ENFORCED) WITH
-- fixed:  AS SELECT user_id FROM stream =>
CREATE SHARED TABLE v WITH ('connector' = 'delta', 'path' = 'v') AS SELECT user_id FROM stream;
