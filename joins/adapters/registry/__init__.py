"""Schema registries through Confluent's REST interface."""
