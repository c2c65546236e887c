"""Tables in object stores: the options that say how one is reached, and their rules."""
