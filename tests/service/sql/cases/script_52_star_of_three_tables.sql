-- plan: LEFT JOIN booking_channels AS b mysql-cdc(shop.booking_channels @ db:3306) [booking_channel_key STRING NOT NULL, update_time TIMESTAMP(3), channel STRING; key booking_channel_key] ON t.booking_channel_key = b.booking_channel_key AS OF t.actual_departure_date | LEFT JOIN passengers AS p mysql-cdc(shop.passengers @ db:3306) [passenger_key STRING NOT NULL, first_name STRING, last_name STRING, update_time TIMESTAMP(3); key passenger_key] ON t.passenger_key = p.passenger_key AS OF t.actual_departure_date | LEFT JOIN stations AS os mysql-cdc(shop.stations @ db:3306) [station_key STRING NOT NULL, update_time TIMESTAMP(3), city STRING; key station_key] ON t.origin_station_key = os.station_key AS OF t.actual_departure_date | LEFT JOIN stations AS ds mysql-cdc(shop.stations @ db:3306) [station_key STRING NOT NULL, update_time TIMESTAMP(3), city STRING; key station_key] ON t.destination_station_key = ds.station_key AS OF t.actual_departure_date | SELECT t.actual_departure_date AS actual_departure_date, p.first_name AS first_name, p.last_name AS last_name, b.channel AS channel, os.city AS origin_station, ds.city AS destination_station | INTO preview print(, 100 rows)
CREATE TABLE passengers (passenger_key STRING, first_name STRING, last_name STRING, update_time TIMESTAMP(3), WATERMARK FOR update_time AS update_time - INTERVAL '10' SECONDS, PRIMARY KEY (passenger_key) NOT ENFORCED) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:db}', 'database-name' = 'shop', 'table-name' = 'passengers');
CREATE TABLE stations (station_key STRING, update_time TIMESTAMP(3), city STRING, WATERMARK FOR update_time AS update_time - INTERVAL '10' SECONDS, PRIMARY KEY (station_key) NOT ENFORCED) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:db}', 'database-name' = 'shop', 'table-name' = 'stations');
CREATE TABLE booking_channels (booking_channel_key STRING, update_time TIMESTAMP(3), channel STRING, WATERMARK FOR update_time AS update_time - INTERVAL '10' SECONDS, PRIMARY KEY (booking_channel_key) NOT ENFORCED) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:db}', 'database-name' = 'shop', 'table-name' = 'booking_channels');
CREATE TABLE train_activities (scheduled_departure_time TIMESTAMP(3), actual_departure_date TIMESTAMP(3), passenger_key STRING, origin_station_key STRING, destination_station_key STRING, booking_channel_key STRING, WATERMARK FOR actual_departure_date AS actual_departure_date - INTERVAL '10' SECONDS) WITH ('connector' = 'kafka', 'topic' = 'train_activities', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
SELECT
  t.actual_departure_date,
  p.first_name,
  p.last_name,
  b.channel,
  os.city AS origin_station,
  ds.city AS destination_station
FROM train_activities t
LEFT JOIN booking_channels FOR SYSTEM_TIME AS OF t.actual_departure_date AS b
ON t.booking_channel_key = b.booking_channel_key
LEFT JOIN passengers FOR SYSTEM_TIME AS OF t.actual_departure_date AS p
ON t.passenger_key = p.passenger_key
LEFT JOIN stations FOR SYSTEM_TIME AS OF t.actual_departure_date AS os
ON t.origin_station_key = os.station_key
LEFT JOIN stations FOR SYSTEM_TIME AS OF t.actual_departure_date AS ds
ON t.destination_station_key = ds.station_key;
