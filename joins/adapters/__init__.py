"""One module per outside system; each is the only importer of its client library."""
