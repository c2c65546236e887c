-- error: CREATE SHARED TABLE … AS is not supported
CREATE SHARED TABLE v WITH ('connector' = 'delta', 'path' = 'v') AS SELECT user_id FROM stream;
