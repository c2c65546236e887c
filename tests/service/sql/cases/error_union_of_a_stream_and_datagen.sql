-- error: table "orders" and table "others" cannot be one stream: "others" is datagen
-- fixed:  UNION ALL SELECT id, t FROM others => 
-- with: orders out_id_name
CREATE TABLE others (id BIGINT, t STRING) WITH ('connector' = 'datagen');
INSERT INTO o SELECT id, currency FROM orders UNION ALL SELECT id, t FROM others;
