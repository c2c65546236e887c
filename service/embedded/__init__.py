"""Embedded Java, jars, Kafka, Connect, MariaDB and PostgreSQL for demo and tests."""
