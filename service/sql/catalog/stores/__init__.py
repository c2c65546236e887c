"""Tables in object stores: the options that say how a store is reached, and what they may be."""
