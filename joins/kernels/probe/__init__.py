"""Records of the stream: parsed, timed, joined."""
