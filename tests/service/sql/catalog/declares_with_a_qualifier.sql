-- error: "shop.people" has a qualifier
CREATE TABLE shop.people (id BIGINT) WITH ('connector' = 'blackhole');
