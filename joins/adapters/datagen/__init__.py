"""The `datagen` source: a process that fills a topic."""
