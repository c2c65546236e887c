-- error: has PARTITION BY of something else than columns
-- fixed: UPPER(currency) => currency
-- with: orders rates_history
CREATE VIEW newest AS SELECT currency, conversion_rate, update_time FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY UPPER(currency) ORDER BY came DESC) AS rownum FROM rates_history) WHERE rownum = 1;
INSERT INTO priced SELECT o.id, r.conversion_rate FROM orders AS o LEFT JOIN newest FOR SYSTEM_TIME AS OF o.proc_time AS r ON o.currency = r.currency;
