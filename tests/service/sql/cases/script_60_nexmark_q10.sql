-- plan: WHERE (nexmark.event_type = 2) | SELECT nexmark.bid.auction AS auction, nexmark.bid.bidder AS bidder, nexmark.bid.price AS price, nexmark.dateTime AS dateTime, nexmark.bid.extra AS extra, DATE_FORMAT(nexmark.dateTime, 'yyyy-MM-dd') AS dt, DATE_FORMAT(nexmark.dateTime, 'HH:mm') AS hm | INTO nexmark_q10 delta(q10, partitioned by dt, hm)
-- with: nexmark
CREATE VIEW person AS SELECT person.id, person.name, person.emailAddress, person.creditCard, person.city, person.state, `dateTime`, person.extra FROM nexmark WHERE event_type = 0;
CREATE VIEW auction AS SELECT auction.id, auction.itemName, auction.description, auction.initialBid, auction.reserve, `dateTime`, auction.expires, auction.seller, auction.category, auction.extra FROM nexmark WHERE event_type = 1;
CREATE VIEW bid AS SELECT bid.auction, bid.bidder, bid.price, bid.channel, bid.url, `dateTime`, bid.extra FROM nexmark WHERE event_type = 2;
CREATE TABLE nexmark_q10 (auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), extra VARCHAR, dt STRING, hm STRING) PARTITIONED BY (dt, hm) WITH ('connector' = 'delta', 'path' = 'q10');
INSERT INTO nexmark_q10 SELECT auction, bidder, price, `dateTime`, extra, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd'), DATE_FORMAT(`dateTime`, 'HH:mm') FROM bid;
