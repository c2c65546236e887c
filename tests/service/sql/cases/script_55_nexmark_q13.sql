-- plan: INNER JOIN side_input AS S mysql-cdc(shop.side_input @ db:3306) [key BIGINT NOT NULL, value STRING; key key] ON CAST(CAST((nexmark.bid.auction % 10000:BIGINT) AS INT) AS BIGINT) = S.key | WHERE (nexmark.event_type = 2) | SELECT nexmark.bid.auction AS auction, nexmark.bid.bidder AS bidder, nexmark.bid.price AS price, nexmark.dateTime AS dateTime, S.value AS value | INTO nexmark_q13 blackhole()
CREATE TABLE nexmark (event_type INT, bid ROW<auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, `dateTime` TIMESTAMP(3), extra VARCHAR>,
  `dateTime` AS CASE WHEN event_type = 2 THEN bid.`dateTime` ELSE NULL END) WITH ('connector' = 'kafka', 'topic' = 'nexmark', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE VIEW bid AS SELECT bid.auction, bid.bidder, bid.price, bid.channel, bid.url, `dateTime`, bid.extra FROM nexmark WHERE event_type = 2;
CREATE TABLE side_input (key BIGINT PRIMARY KEY NOT ENFORCED, `value` VARCHAR) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:db}', 'database-name' = 'shop', 'table-name' = 'side_input');
CREATE TABLE nexmark_q13 (auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), `value` VARCHAR) WITH ('connector' = 'blackhole');
INSERT INTO nexmark_q13
SELECT B.auction, B.bidder, B.price, B.`dateTime`, S.`value`
FROM (SELECT *, PROCTIME() as p_time FROM bid) B
JOIN side_input FOR SYSTEM_TIME AS OF B.p_time AS S
ON mod(B.auction, 10000) = S.key;
