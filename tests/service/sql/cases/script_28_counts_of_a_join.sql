-- plan: WATERMARK v.viewed_at AS (v.viewed_at - INTERVAL '10' SECOND) | INNER JOIN users AS u mysql-cdc(shop.users @ db:3306) [user_id BIGINT NOT NULL, full_name STRING, country STRING, is_active BOOLEAN; key user_id] ON v.user_id = u.user_id | WINDOW TUMBLE of v.viewed_at, size 3600000 ms | GROUP BY window_start, window_end, u.country AS k0 | AGGREGATE COUNT(*):BIGINT AS a0 | EMIT windows when the watermark has reached their end | LATE records INTO the job's own table | SELECT window_start AS at, k0 AS country, a0 AS n | INTO per_country delta(per_country)
-- with: page_views users_of_shop
CREATE TABLE per_country (
    at TIMESTAMP(3), country STRING, n BIGINT
) WITH ('connector' = 'delta', 'path' = 'per_country');
CREATE VIEW located AS SELECT v.viewed_at, u.country FROM page_views AS v JOIN users FOR SYSTEM_TIME AS OF v.proc AS u ON v.user_id = u.user_id;
INSERT INTO per_country SELECT window_start, country, COUNT(*) FROM TABLE(TUMBLE(TABLE located, DESCRIPTOR(viewed_at), INTERVAL '1' HOUR)) GROUP BY window_start, window_end, country;
