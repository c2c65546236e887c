-- error: column "a.element" is INT, which occurs many times in a row, which has no sequence
-- fixed: , 'fields.a.element.start' = '1', 'fields.a.element.end' = '9' => 
-- with: d_by_shop out_string
CREATE TABLE s (k BIGINT, a ARRAY<INT>, p AS PROCTIME()) WITH (
    'connector' = 'datagen', 'fields.a.element.start' = '1', 'fields.a.element.end' = '9'
);
INSERT INTO o SELECT d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
