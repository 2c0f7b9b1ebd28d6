"""A collector: the service that devices send their reports to, and the page that people see.

- `known`, `segments`, `directory`, `sql`: where reports are kept, durably, each once
- `records`: stores that are read together; `tokens`: one report for one person
- `commit`: many requests, one write
- `service`, `answers`, `metrics`: the endpoints, refusals and counts
- `guard`, `limits`: what a connection and an address may take
- `static`: the device's code and the pages; `learned`: the files of the model
"""
