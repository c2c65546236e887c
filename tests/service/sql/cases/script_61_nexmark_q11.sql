-- plan: WHERE (nexmark.event_type = 2) | WINDOW SESSION of nexmark.dateTime, gap 10000 ms | GROUP BY window_start, window_end, nexmark.bid.bidder AS k0 | AGGREGATE COUNT(*):BIGINT AS a0 | SELECT k0 AS bidder, a0 AS bid_count, window_start AS starttime, window_end AS endtime | INTO nexmark_q11 blackhole()
-- with: nexmark
CREATE VIEW person AS SELECT person.id, person.name, person.emailAddress, person.creditCard, person.city, person.state, `dateTime`, person.extra FROM nexmark WHERE event_type = 0;
CREATE VIEW auction AS SELECT auction.id, auction.itemName, auction.description, auction.initialBid, auction.reserve, `dateTime`, auction.expires, auction.seller, auction.category, auction.extra FROM nexmark WHERE event_type = 1;
CREATE VIEW bid AS SELECT bid.auction, bid.bidder, bid.price, bid.channel, bid.url, `dateTime`, bid.extra FROM nexmark WHERE event_type = 2;
CREATE TABLE nexmark_q11 (bidder BIGINT, bid_count BIGINT, starttime TIMESTAMP(3), endtime TIMESTAMP(3)) WITH ('connector' = 'blackhole');
INSERT INTO nexmark_q11 SELECT B.bidder, count(*) as bid_count, SESSION_START(B.`dateTime`, INTERVAL '10' SECOND) as starttime, SESSION_END(B.`dateTime`, INTERVAL '10' SECOND) as endtime FROM bid B GROUP BY B.bidder, SESSION(B.`dateTime`, INTERVAL '10' SECOND);
