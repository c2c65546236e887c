-- plan: FROM s AS s kafka(other @ broker:9092, earliest-offset) [k BIGINT, n INT, t STRING, m INT, p = PROCTIME(), q = (s.k * 2:BIGINT)]
-- with: d_price out_bigint_string base … join_name
CREATE TABLE s (m INT, q AS k * 2) WITH ('topic' = 'other') LIKE base;
