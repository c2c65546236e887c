"""Object stores: paths of tables in them, and the proof that one keeps conditional puts."""
