"""Embedded Java, jars, Kafka broker and MariaDB for demo and tests."""
