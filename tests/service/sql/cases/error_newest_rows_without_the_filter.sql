-- error: keeps more than one row of a key
-- fixed: rownum < 3 => rownum = 1
-- with: orders rates_history
CREATE VIEW newest AS SELECT currency, conversion_rate, update_time FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY came DESC) AS rownum FROM rates_history) WHERE rownum < 3;
INSERT INTO priced SELECT o.id, r.conversion_rate FROM orders AS o LEFT JOIN newest FOR SYSTEM_TIME AS OF o.proc_time AS r ON o.currency = r.currency;
