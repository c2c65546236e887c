-- plan: SELECT o.id AS id, 1:DECIMAL(32, 2) AS rate
-- with: orders rates_history
CREATE VIEW newest AS SELECT rownum, currency, conversion_rate, update_time FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY came DESC) AS rownum FROM rates_history) WHERE rownum = 1;
INSERT INTO priced SELECT o.id, r.rownum FROM orders AS o INNER JOIN newest FOR SYSTEM_TIME AS OF o.proc_time AS r ON o.currency = r.currency;
