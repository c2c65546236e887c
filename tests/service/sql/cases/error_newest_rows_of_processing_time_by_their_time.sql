-- error: has the row of each key with the greatest time
-- fixed: AS OF o.proc_time => AS OF o.ts
-- with: orders rates_history
CREATE VIEW newest AS SELECT currency, conversion_rate, update_time FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY update_time DESC) AS rownum FROM rates_history) WHERE rownum = 1;
INSERT INTO priced SELECT o.id, r.conversion_rate FROM orders AS o LEFT JOIN newest FOR SYSTEM_TIME AS OF o.proc_time AS r ON o.currency = r.currency;
