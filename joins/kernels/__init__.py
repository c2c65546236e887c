"""Arrow in, Arrow out: what runs on the workers, without a JVM."""
