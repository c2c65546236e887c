-- error: table "o" is print, which cannot be shared
CREATE SHARED TABLE o (id BIGINT) WITH ('connector' = 'print');
