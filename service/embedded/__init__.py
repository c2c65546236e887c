"""Embedded Java, jars, Kafka, Connect, registry, MariaDB and PostgreSQL for demo and tests."""
