"""A collector: the service that devices send their reports to, and the page that people see.

- `known`, `segments`, `directory`, `sql`: where reports are kept, durably, each once
- `commit`: many requests, one write; `tokens`: one report for one person
- `service`: the endpoints; `static`: the device's code and the pages
"""
