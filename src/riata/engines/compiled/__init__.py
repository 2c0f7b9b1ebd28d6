"""Compiled selections along a Frank-Wolfe path, for large sparse data.

`frank_wolfe.CompiledFrankWolfe` is the entry: it takes the columns of `entries.entries_by_column`
and selects by the kernels of `selection`, which follow `riata.mechanisms.envelope`.
`self_check` compares all of it with plain sums. All modules but this one and `codes` need numba,
and are imported only when they are used."""
