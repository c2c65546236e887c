-- plan: WHERE (IN(page_views.device.os, 'android', 'ios') AND ((page_views.device.width >= 200) AND (page_views.device.width <= 900))) | SELECT page_views.view_id AS view_id, page_views.device.os AS os | INTO mobile_views kafka(mobile_views @ broker:9092) | SET pipeline.name = mobile views
-- with: page_views
CREATE TABLE mobile_views (
    view_id BIGINT,
    os STRING
) WITH (
    'connector' = 'kafka',
    'topic' = 'mobile_views',
    'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'json'
);
SET 'pipeline.name' = 'mobile views';
SET 'parallelism.default' = '2';
/* only phones */
INSERT INTO mobile_views
SELECT view_id, device.os FROM page_views -- nested
WHERE device.os IN ('android', 'ios') AND device.width BETWEEN 200 AND 900;
