"""Avro as Confluent's serializers write it: bytes into JSON, for the readers of JSON."""
