"""The service in the words of OpenAPI 3.1, so that programs can drive and attack it."""

from __future__ import annotations

from typing import Any

from riata import __version__
from riata.local import wire
from riata.local.task import Task


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
                                    "minLength": wire.REPORT_BYTES,
                                }
                            }
                        },
                    },
                    "responses": {
                        "201": {"description": "The reports are durable. Repeats change nothing."},
                        "400": {"description": "Not accepted. The reason is never told."},
                        "507": {"description": "No room. Send the same bytes again later."},
                    },
                }
            },
            "/health": {"get": _get("Whether the service runs.", "text/plain")},
            "/metrics": {"get": _get("Counts for Prometheus.", "text/plain")},
        },
    }


def _get(summary: str, kind: str) -> dict[str, Any]:
    return {
        "summary": summary,
        "responses": {"200": {"description": summary, "content": {kind: {}}}},
    }
