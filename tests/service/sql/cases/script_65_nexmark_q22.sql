-- plan: WHERE (nexmark.event_type = 2) | SELECT nexmark.bid.auction AS auction, nexmark.bid.bidder AS bidder, nexmark.bid.price AS price, nexmark.bid.channel AS channel, SPLIT_INDEX(nexmark.bid.url, '/', 3) AS dir1, SPLIT_INDEX(nexmark.bid.url, '/', 4) AS dir2, SPLIT_INDEX(nexmark.bid.url, '/', 5) AS dir3 | INTO nexmark_q22 blackhole()
-- with: nexmark
CREATE VIEW person AS SELECT person.id, person.name, person.emailAddress, person.creditCard, person.city, person.state, `dateTime`, person.extra FROM nexmark WHERE event_type = 0;
CREATE VIEW auction AS SELECT auction.id, auction.itemName, auction.description, auction.initialBid, auction.reserve, `dateTime`, auction.expires, auction.seller, auction.category, auction.extra FROM nexmark WHERE event_type = 1;
CREATE VIEW bid AS SELECT bid.auction, bid.bidder, bid.price, bid.channel, bid.url, `dateTime`, bid.extra FROM nexmark WHERE event_type = 2;
CREATE TABLE nexmark_q22 (auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, dir1 VARCHAR, dir2 VARCHAR, dir3 VARCHAR) WITH ('connector' = 'blackhole');
INSERT INTO nexmark_q22 SELECT auction, bidder, price, channel, SPLIT_INDEX(url, '/', 3) as dir1, SPLIT_INDEX(url, '/', 4) as dir2, SPLIT_INDEX(url, '/', 5) as dir3 FROM bid;
