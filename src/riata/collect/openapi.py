"""The service in the words of OpenAPI 3.1, so that programs can drive and attack it."""

from __future__ import annotations

from typing import Any

from riata import __version__
from riata.local import report_format
from riata.local.task import Task

#: Reports in one request, at most.
MOST_REPORTS = 1 << 16
_SECONDS = {
    "description": "When to send the same bytes again, in seconds.",
    "required": True,
    "schema": {"type": "integer", "minimum": 1},
}


def description(task: Task) -> dict[str, Any]:
    """What the endpoints take and give."""
    return {
        "openapi": "3.1.0",
        "info": {"title": task.title or "riata collector", "version": __version__},
        "paths": {
            "/task": _get("The task file. Its SHA-256 is the task's id.", "application/json"),
            "/tasks/{task}/reports": {"post": _upload(task)},
            "/health": _get("Whether the service runs.", "text/plain"),
            "/ready": _get(
                "Whether a report could be kept now: the store can be written.",
                "text/plain",
                otherwise="The store cannot be written.",
            ),
            "/metrics": _get("Counts for Prometheus.", "text/plain"),
        },
    }


def _upload(task: Task) -> dict[str, Any]:
    size = report_format.REPORT_BYTES
    reports = {
        "type": "string",
        "format": "binary",
        "minLength": size,
        "maxLength": MOST_REPORTS * size,
    }
    path = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
    too_many = _problem("Too many reports from this address.")
    return {
        "operationId": "sendReports",
        "summary": "Send reports, one after another, eight bytes each.",
        "parameters": [
            {"name": "task", "in": "path", "required": True, "schema": path, "example": task.id}
        ],
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": reports}},
        },
        "responses": {
            "201": {"description": "The reports are durable. Repeats change nothing."},
            "400": _problem("Not accepted. The reason is never told."),
            "413": _problem("More reports than one address may send in an hour."),
            "429": too_many | {"headers": {"Retry-After": _SECONDS}},
            "503": _problem("Not kept. Send the same bytes again later."),
            "507": _problem("No room. Send the same bytes again later."),
        },
    }


def _get(summary: str, kind: str, otherwise: str = "") -> dict[str, Any]:
    responses = {"200": {"description": summary, "content": {kind: {}}}}
    if otherwise:
        responses["503"] = {"description": otherwise, "content": {kind: {}}}
    return {"get": {"summary": summary, "responses": responses}}


def _problem(description: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"error": {"type": "string"}},
        "required": ["error"],
        "additionalProperties": False,
    }
    return {"description": description, "content": {"application/json": {"schema": schema}}}
