"""Readers: one file for each format of rows.

- `base`: what a reader is; a `TableReader` has named columns, a `MatrixReader` has none
- `lines`, `csv_file`, `svmlight`: text files
- `arrow`, `frames`: Parquet, and tables in memory
- `array_files`: NumPy and SciPy files
"""
