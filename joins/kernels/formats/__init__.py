"""Formats of topics, by Flink's names (JSON, CSV, Avro, raw): records to columns and back."""
