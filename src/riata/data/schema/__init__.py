"""The public file that says what a row is, before any row is seen.

- `schema`: the file as a whole; `toml_text` writes it, `schema_fields` and `column_names` check it
- `named_features` with `features`, and `numeric_block`: how columns become numbers in [-1, 1]
- `target`: what is to be predicted
"""

from riata.data.schema.schema import Schema

__all__ = ["Schema"]
