-- error: column "a" is ARRAY<INT>, which has no sequence
-- fixed: , 'fields.a.kind' = 'sequence' =>
-- with: d_by_shop out_string
CREATE TABLE s (k BIGINT, a ARRAY<INT>, p AS PROCTIME()) WITH (
    'connector' = 'datagen', 'fields.a.kind' = 'sequence'
);
INSERT INTO o SELECT d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
