-- plan: WHERE (readings.celsius > CAST(30.5:DECIMAL(3, 1) AS DOUBLE)) | SELECT readings.sensor_id AS sensor_id, (((readings.celsius * CAST(9 AS DOUBLE)) / CAST(5 AS DOUBLE)) + CAST(32 AS DOUBLE)) AS fahrenheit, readings.timestamp AS timestamp | INTO preview print(, 100 rows)
-- with: readings
SELECT sensor_id, celsius * 9 / 5 + 32 AS fahrenheit, `timestamp` FROM readings WHERE celsius > 30.5;
