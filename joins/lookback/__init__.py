"""Looking back: history, replays, explanations and dead letters of batches that are committed."""
