-- plan: FROM s AS s datagen(500/s, 1000 rows, k sequence start 1 end 1000, name_ random length 8, price random min 0.5 max 99.99, n random min -5 max 100) [k BIGINT, name_ STRING, price DECIMAL(6, 2), r DOUBLE, ok BOOLEAN, n INT, p = PROCTIME()]
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, name_ STRING, price DECIMAL(6, 2), r DOUBLE, ok BOOLEAN, n INT, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'rows-per-second' = '500', 'number-of-rows' = '1000',
    'fields.k.kind' = 'sequence', 'fields.k.start' = '1', 'fields.k.end' = '1000', 'fields.name_.length' = '8',
    'fields.price.min' = '0.5', 'fields.price.max' = '99.99', 'fields.n.kind' = 'random', 'fields.n.min' = '-5', 'fields.n.max' = '1e2'
);
