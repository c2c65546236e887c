"""Plans meet adapters: the only place that names both."""
