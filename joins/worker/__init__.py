"""What runs inside a Spark task, and what it tells the driver."""
