"""A collector: the service that devices send their reports to, and the page that people see.

- `store`, `directory`, `segments`, `word_set`, `sql`: where reports are kept, durably, each once
- `stores`, `merging`: stores that are read together; `tokens`: one report for one person
- `committer`: many requests, one write
- `server`, `service`, `refusals`, `metrics`, `dashboard`, `openapi`: the endpoints
- `connection_limits`, `address_limits`: what a connection and an address may take
- `static`: the device's code and the pages; `artifacts`: the files of the model
"""
