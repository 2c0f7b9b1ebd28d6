"""Reading files that somebody else made: within a limit of memory, and without running them.

- `limit`: how much memory one file, and all that is built from it, may take
- `text`, `toml_check`: JSON and TOML
- `archive`: arrays in a zip file
"""
