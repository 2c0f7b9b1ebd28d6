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
            "/task": {
                "get": _get("The task file. Its SHA-256 is the task's id.", "application/json")
            },
            "/tasks/{task}/reports": {
                "post": {
                    "operationId": "sendReports",
                    "summary": "Send reports, one after another, eight bytes each.",
                    "parameters": [
                        {
                            "name": "task",
                            "in": "path",
                            "required": True,
                            "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
                            "example": task.id,
                        }
                    ],
                    "requestBody": {
                        "required": True,
                        "content": {
                            "application/octet-stream": {
                                "schema": {
                                    "type": "string",
                                    "format": "binary",
                                    "minLength": report_format.REPORT_BYTES,
                                    "maxLength": MOST_REPORTS * report_format.REPORT_BYTES,
                                }
                            }
                        },
                    },
                    "responses": {
                        "201": {"description": "The reports are durable. Repeats change nothing."},
                        "400": _problem("Not accepted. The reason is never told."),
                        "413": _problem("More reports than one address may send in an hour."),
                        "429": _problem("Too many reports from this address.")
                        | {"headers": {"Retry-After": _SECONDS}},
                        "503": _problem("Not kept. Send the same bytes again later."),
                        "507": _problem("No room. Send the same bytes again later."),
                    },
                }
            },
            "/health": {"get": _get("Whether the service runs.", "text/plain")},
            "/ready": {"get": _ready()},
            "/metrics": {"get": _get("Counts for Prometheus.", "text/plain")},
        },
    }


def _ready() -> dict[str, Any]:
    found = _get("Whether a report could be kept now: the store can be written.", "text/plain")
    found["responses"]["503"] = {
        "description": "The store cannot be written.",
        "content": {"text/plain": {}},
    }
    return found


def _get(summary: str, kind: str) -> dict[str, Any]:
    return {
        "summary": summary,
        "responses": {"200": {"description": summary, "content": {kind: {}}}},
    }


def _problem(description: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"error": {"type": "string"}},
        "required": ["error"],
        "additionalProperties": False,
    }
    return {"description": description, "content": {"application/json": {"schema": schema}}}
