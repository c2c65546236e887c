"""The API's documents as Pydantic models, and what fills them."""
