"""Joins a stream with a table that is still being copied, on Spark, Delta, Arrow and Kafka."""
