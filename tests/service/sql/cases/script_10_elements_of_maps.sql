-- plan: CROSS JOIN UNNEST(events.props) AS p | WHERE (p.key <> 'secret') | SELECT events.id AS id, p.key AS name, p.value AS content | INTO props delta(props)
CREATE TABLE events (
    id STRING,
    props MAP<STRING, STRING>
) WITH (
    'connector' = 'kafka',
    'topic' = 'events',
    'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'json'
);
CREATE TABLE props (
    id STRING, name STRING, content STRING
) WITH ('connector' = 'delta', 'path' = 'props');
INSERT INTO props SELECT id, k, v FROM events, UNNEST(props) AS p (k, v) WHERE k <> 'secret';
