-- error: nested more than 16 levels deep
-- fixed: ARRAY<INT> => STRING
CREATE TABLE t (a ARRAY<ARRAY<ARRAY<ARRAY<ARRAY<ARRAY<ARRAY<ARRAY<ARRAY<ARRAY<ARRAY<ARRAY<ARRAY<ARRAY<ARRAY<ARRAY<INT>>>>>>>>>>>>>>>>) WITH ('connector' = 'print');
