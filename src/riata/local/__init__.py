"""The local model: devices that trust nobody send one report each, and a server learns from them.

A `Task` is the public file that fixes everything beforehand, a `Client` turns one person's row into
eight bytes on that person's own device, and an `Aggregator` adds reports up and solves.

- `task`, `fields`, `encoding`: the file, and how answers become numbers
- `generator`, `channel`, `arms`, `sketch`, `fourier`: the randomised reports
- `play`, `client`, `wire`: the device; `aggregator`, `tally`, `seen`: the server
- `learners`: from sums to models; `outcome`: a model and all that is told with it
- `planning`: what can be expected, before anything is collected
- `paper`: the algorithms of Zheng, Mou and Wang (2017), for comparison
"""

from riata.local.aggregator import Aggregator
from riata.local.client import Client
from riata.local.learners import LocalModel
from riata.local.outcome import Outcome
from riata.local.planning import Guess, TaskPlan
from riata.local.task import Task

__all__ = ["Aggregator", "Client", "Guess", "LocalModel", "Outcome", "Task", "TaskPlan"]
