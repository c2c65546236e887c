"""The definition that kernels are tested against.

Operators, timers, generators, windows. Jobs never run it.
"""
