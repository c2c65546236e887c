"""What runs inside a Spark task, what it is given, and what it tells the driver."""
