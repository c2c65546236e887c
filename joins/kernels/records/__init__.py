"""Records of Kafka: Arrow rows as finished record batches."""
