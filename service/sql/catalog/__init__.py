"""What a script declares: tables, their options, settings and watermarks."""
