"""The name of a search over many candidates."""

from __future__ import annotations

from typing import Any

from riata.fitting.request import Request, arguments_of, common_facts
from riata.identity import digest
from riata.privacy.events import Event, to_json


def search_digest(search: Any, request: Request, event: Event, seed: int | None) -> str:
    """As `PlannedFit.identity`: its arguments, those of its estimator, and what it costs.

    Parameters
    ----------
    search : estimator
        With an argument `estimator`.
    request : Request
        Of a fit of this estimator on the same rows.
    event : Event
    seed : int, optional
    """
    parameters = arguments_of(search, deep=True)
    parameters["estimator"] = type(parameters["estimator"])
    shape = (request.n_rows, request.n_features)
    facts = common_facts(type(search), parameters, seed, request.schema, request.classes, shape)
    return digest(facts | {"event": to_json(event)})
