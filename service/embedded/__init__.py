"""Embedded Java, jars, Kafka, Connect, a schema registry, MariaDB, PostgreSQL: for demo and tests."""
