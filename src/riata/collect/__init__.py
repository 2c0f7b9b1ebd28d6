"""A collector: the service that devices send their reports to, and the page that people see.

- `known`: which reports were counted; `segments`, `sql`: where they are kept, durably
- `commit`: many requests, one write to the disk
- `service`: the endpoints; `static`: the device's code and the pages
"""
