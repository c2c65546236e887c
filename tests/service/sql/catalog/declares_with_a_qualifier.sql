-- error: "shop.people" has a qualifier
-- fixed: shop.people => people
CREATE TABLE shop.people (id BIGINT) WITH ('connector' = 'blackhole');
