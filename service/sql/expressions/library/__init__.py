"""The functions of the language by kind: what each takes and gives."""
