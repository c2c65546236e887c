"""What a terminal gets and a pipe does not: frames, bars, prompts, completion."""
