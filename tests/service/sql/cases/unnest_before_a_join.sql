-- plan: CROSS JOIN UNNEST(c.tags) AS t | LEFT JOIN users AS u mysql-cdc(shop.users @ db:3306) [id BIGINT NOT NULL, name STRING, level INT; key id] ON CAST(t.element AS BIGINT) = u.id | SELECT c.id AS id, u.name AS name | INTO o blackhole()
-- with: carts users out_id_name
INSERT INTO o SELECT c.id, u.name FROM carts AS c CROSS JOIN UNNEST(tags) AS t (tag) LEFT JOIN users FOR SYSTEM_TIME AS OF c.p AS u ON CAST(t.tag AS BIGINT) = u.id;
