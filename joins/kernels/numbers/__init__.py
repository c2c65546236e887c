"""Functions of numbers beyond arithmetic, with the digits that Java gives."""
