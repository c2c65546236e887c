"""Functions of JSON texts: paths into them, their forms, values written as JSON."""
