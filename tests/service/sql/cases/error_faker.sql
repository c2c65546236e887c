-- error: unknown connector "faker"
-- fixed: 'faker', 'fields.t.expression' = '#{Name.first_name}' => 'datagen'
-- with: orders
CREATE TABLE f (id BIGINT, t STRING) WITH ('connector' = 'faker', 'fields.t.expression' = '#{Name.first_name}');
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT id, t FROM f;
