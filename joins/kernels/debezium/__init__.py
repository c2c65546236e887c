"""Records of Debezium as columns: changes, snapshots' marks, notifications."""
