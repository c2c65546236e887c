-- error: AVG(…) OVER (…) keeps the rows before each one
-- with: readings
SELECT sensor_id, AVG(celsius) OVER (PARTITION BY sensor_id ORDER BY `timestamp` RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW) FROM readings;
