"""Scripts that tests fill in."""

TABLES = """
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING, price DECIMAL(10, 2)) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, n INT, t STRING, ok BOOLEAN, r DOUBLE, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
"""
JOIN = "FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id"


def selecting(expression: str, sink_type: str = "STRING") -> str:
    sink = f"CREATE TABLE o (x {sink_type}) WITH ('connector' = 'blackhole');\n"
    return f"{TABLES}{sink}INSERT INTO o SELECT {expression} {JOIN};\n"
