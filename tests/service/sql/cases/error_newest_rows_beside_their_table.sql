-- error: is joined twice with different keys
-- fixed: CREATE VIEW => CREATE TABLE again (currency STRING) WITH ('connector' = 'kafka', 'topic' = 'rates', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json'); CREATE VIEW
-- fixed: JOIN rates_history FOR => JOIN again FOR
-- with: orders rates_history
CREATE VIEW newest AS SELECT currency, conversion_rate, update_time FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY came DESC) AS rownum FROM rates_history) WHERE rownum = 1;
INSERT INTO priced SELECT o.id, r.conversion_rate FROM orders AS o JOIN newest FOR SYSTEM_TIME AS OF o.proc_time AS r ON o.currency = r.currency JOIN rates_history FOR SYSTEM_TIME AS OF o.proc_time AS x ON o.currency = x.currency;
