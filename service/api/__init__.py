"""The REST API of the control plane."""
