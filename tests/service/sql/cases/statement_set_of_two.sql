-- plan: INSERT 1 | SELECT s.k AS x, d.name AS y | INTO o blackhole() | INSERT 2 | FROM s AS c kafka(s @ broker:9092, earliest-offset) [k BIGINT, n INT, t STRING, p = PROCTIME()] | WHERE (c.n > 3) | SELECT c.t AS t, d.price AS price | INTO prices delta(prices)
-- with: d_price s_plain out_bigint_string
CREATE TABLE prices (t STRING, price DECIMAL(10, 2)) WITH ('connector' = 'delta', 'path' = 'prices');
EXECUTE STATEMENT SET BEGIN
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
INSERT INTO prices SELECT c.t, d.price FROM s AS c
    JOIN d FOR SYSTEM_TIME AS OF c.p ON c.k = d.id WHERE c.n > 3;
END;
