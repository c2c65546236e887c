"""What scripts may name without declaring it: the catalog of the service."""
