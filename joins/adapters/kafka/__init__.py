"""Kafka through kafka-python."""
