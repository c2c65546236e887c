"""Records of Kafka: Arrow rows as finished record batches, and record batches as columns."""
