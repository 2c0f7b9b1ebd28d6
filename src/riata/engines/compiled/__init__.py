"""Compiled code for large data. Needs numba, and is imported only when it is used."""
