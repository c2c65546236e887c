-- plan: CROSS JOIN UNNEST(b.lines) AS l | WHERE (l.qty > 0) | SELECT b.basket_id AS basket_id, l.sku AS sku, (CAST(l.qty AS DECIMAL(10, 0)) * l.price):DECIMAL(19, 2) AS total | INTO basket_lines delta(basket_lines)
CREATE TABLE baskets (
    basket_id BIGINT,
    lines ARRAY<ROW<sku STRING, qty INT, price DECIMAL(8, 2)>>
) WITH (
    'connector' = 'kafka',
    'topic' = 'baskets',
    'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'json'
);
CREATE TABLE basket_lines (
    basket_id BIGINT, sku STRING, total DECIMAL(19, 2)
) WITH ('connector' = 'delta', 'path' = 'basket_lines');
INSERT INTO basket_lines
SELECT b.basket_id, l.sku, l.qty * l.price
FROM baskets AS b
CROSS JOIN UNNEST(b.lines) AS l (sku, qty, price)
WHERE l.qty > 0;
