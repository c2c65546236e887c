"""Kafka Connect through its REST interface."""
