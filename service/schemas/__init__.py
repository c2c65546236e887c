"""The API's documents as Pydantic models, for the API and its clients."""
