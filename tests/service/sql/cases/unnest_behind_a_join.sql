-- plan: CROSS JOIN UNNEST(c.tags) AS t | INNER JOIN users AS u mysql-cdc(shop.users @ db:3306) [id BIGINT NOT NULL, name STRING, level INT; key id] ON c.id = u.id | SELECT c.id AS id, t.element AS name | INTO o blackhole()
-- with: carts users out_id_name
INSERT INTO o SELECT c.id, t.tag FROM carts AS c JOIN users FOR SYSTEM_TIME AS OF c.p AS u ON c.id = u.id CROSS JOIN UNNEST(c.tags) AS t (tag);
