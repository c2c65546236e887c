-- error: table "o" is print, which cannot be shared
-- fixed: SHARED TABLE => TABLE
CREATE SHARED TABLE o (id BIGINT) WITH ('connector' = 'print');
