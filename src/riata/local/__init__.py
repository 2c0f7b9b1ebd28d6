"""The local model: devices that trust nobody send one report each, and a server learns from them.

A `Task` is the public file that fixes everything beforehand, a `Client` turns one person's row into
eight bytes on that person's own device, and an `Aggregator` adds reports up and solves.

- `kinds`: what can be learned; `task`, `task_fields`, `task_questions`: the file;
  `encoding`: how answers become numbers
- `generator`, `channel`, `questions`, `sketch`, `fourier`: the randomised reports
- `randomize`, `client`, `report_journal`, `report_format`: the device
- `aggregator`, `question_sums`, `duplicate_filter`: the server
- `learners`: from sums to models; `collection_result`: a model and what is published with it
- `task_plan`, `population`: what can be expected, before anything is collected
- `paper`: the algorithms of Zheng, Mou and Wang (2017), for comparison
"""

from riata.local.aggregator import Aggregator, solve_together
from riata.local.client import Client
from riata.local.collection_result import CollectionResult
from riata.local.learners import LocalModel
from riata.local.population import PopulationGuess
from riata.local.task import Task
from riata.local.task_plan import TaskPlan

__all__ = [
    "Aggregator",
    "Client",
    "CollectionResult",
    "LocalModel",
    "PopulationGuess",
    "Task",
    "TaskPlan",
    "solve_together",
]
