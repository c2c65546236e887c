-- error: does not order the rows of a key by one time, newest first
-- fixed: ORDER BY conversion_rate => ORDER BY update_time
-- with: orders rates_history
CREATE VIEW newest AS SELECT currency, conversion_rate, update_time FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY conversion_rate DESC) AS rownum FROM rates_history) WHERE rownum = 1;
INSERT INTO priced SELECT o.id, r.conversion_rate FROM orders AS o LEFT JOIN newest FOR SYSTEM_TIME AS OF o.ts AS r ON o.currency = r.currency;
