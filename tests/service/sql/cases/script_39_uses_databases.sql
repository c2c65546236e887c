-- plan: SELECT page_views.view_id AS view_id | INTO kept delta(kept)
CREATE DATABASE IF NOT EXISTS web;
USE web;
CREATE TABLE page_views (
    view_id   BIGINT,
    user_id   BIGINT,
    url       STRING,
    referrer  STRING,
    device    ROW<os STRING, width INT, languages ARRAY<STRING>>,
    viewed_at TIMESTAMP(3),
    proc      AS PROCTIME(),
    WATERMARK FOR viewed_at AS viewed_at - INTERVAL '10' SECOND
) WITH (
    'connector' = 'kafka',
    'topic' = 'page_views',
    'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'json'
);
CREATE TABLE kept (
    view_id BIGINT
) WITH ('connector' = 'delta', 'path' = 'kept');
INSERT INTO `default_catalog`.`web`.`kept` SELECT view_id FROM web.page_views;
