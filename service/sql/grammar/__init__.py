"""The grammar: from tokens to frozen nodes; nothing is resolved."""
