"""Embedded Java, jars, Kafka broker, Kafka Connect, MariaDB and PostgreSQL for demo and tests."""
