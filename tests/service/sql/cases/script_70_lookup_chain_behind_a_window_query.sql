-- error: a join behind an aggregated window
CREATE TABLE views (page STRING, uid BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'kafka', 'topic' = 'views', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE pages (page STRING, title STRING, PRIMARY KEY (page) NOT ENFORCED) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:db}', 'database-name' = 'shop', 'table-name' = 'pages');
CREATE TABLE o (page STRING, title STRING, n BIGINT, e TIMESTAMP(3)) WITH ('connector' = 'print');
INSERT INTO o
SELECT w.page, p.title, w.n, w.window_end
FROM (SELECT page, window_start, window_end, COUNT(*) AS n, PROCTIME() AS pt FROM TABLE(TUMBLE(TABLE views, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY page, window_start, window_end) AS w
LEFT JOIN pages FOR SYSTEM_TIME AS OF w.pt AS p ON w.page = p.page;
