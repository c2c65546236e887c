"""What the JVMs of tests are started with."""

# One compiler is quick to start. Its 48 MB of code are full after a minute of a job with many
# queries, and then the JVM compiles nothing any more.
# One thread collects: on two cores several only wait for each other.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
