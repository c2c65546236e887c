-- warning: Table "f" is faker: datagen makes its rows, from the same expressions.
-- with: orders out_id_name
CREATE TABLE f (id BIGINT, t STRING) WITH ('connector' = 'faker', 'fields.t.expression' = '#{Name.first_name}');
INSERT INTO o SELECT id, t FROM f;
