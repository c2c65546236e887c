-- plan: WHERE (nexmark.event_type = 2) | WINDOW TUMBLE of the clock, size 10000 ms | GROUP BY window_start, window_end, nexmark.bid.bidder AS k0 | AGGREGATE COUNT(*):BIGINT AS a0 | SELECT k0 AS bidder, a0 AS bid_count, CAST(window_start AS TIMESTAMP(3)) AS starttime, CAST(window_end AS TIMESTAMP(3)) AS endtime | INTO nexmark_q12 blackhole()
-- with: nexmark
CREATE VIEW person AS SELECT person.id, person.name, person.emailAddress, person.creditCard, person.city, person.state, `dateTime`, person.extra FROM nexmark WHERE event_type = 0;
CREATE VIEW auction AS SELECT auction.id, auction.itemName, auction.description, auction.initialBid, auction.reserve, `dateTime`, auction.expires, auction.seller, auction.category, auction.extra FROM nexmark WHERE event_type = 1;
CREATE VIEW bid AS SELECT bid.auction, bid.bidder, bid.price, bid.channel, bid.url, `dateTime`, bid.extra FROM nexmark WHERE event_type = 2;
CREATE TABLE nexmark_q12 (bidder BIGINT, bid_count BIGINT, starttime TIMESTAMP(3), endtime TIMESTAMP(3)) WITH ('connector' = 'blackhole');
CREATE VIEW B AS SELECT *, PROCTIME() as p_time FROM bid;
INSERT INTO nexmark_q12 SELECT bidder, count(*) as bid_count, window_start AS starttime, window_end AS endtime FROM TABLE(TUMBLE(TABLE B, DESCRIPTOR(p_time), INTERVAL '10' SECOND)) GROUP BY bidder, window_start, window_end;
