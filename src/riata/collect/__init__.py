"""A collector: the service that devices send their reports to, and the page that people see.

- `known`, `segments`, `slots`, `directory`, `sql`: where reports are kept, durably, each once
- `commit`: many requests, one write; `tokens`: one report for one person
- `service`: the endpoints; `guard`: what a connection may take
- `static`: the device's code and the pages; `learned`: the files of the model
"""
