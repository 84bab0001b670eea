"""The OpenAPI document: what clients and their generators need to know."""

from __future__ import annotations

from functools import cache
from typing import Any

from sketchnewton.serve.bodies import FORMATS

__all__ = ["document"]

_RECORD = {
    "type": "object",
    "additionalProperties": True,
    "example": {"user": "anna", "price": 3.5, "vip": True},
}
_LABEL = {"oneOf": [{"type": "number"}, {"type": "string"}, {"type": "boolean"}]}
_ANSWER = {
    "type": "object",
    "properties": {
        "prediction": _LABEL,
        "score": {"type": "number"},
        "probability": {"type": "number"},
        "probabilities": {"type": "object", "additionalProperties": {"type": "number"}},
        "id": {"type": "string"},
        "version": {"type": "integer", "description": "Rows that the model has learned."},
    },
}
_ANSWERS = {
    "oneOf": [
        _ANSWER,
        {
            "type": "object",
            "properties": {
                "predictions": {"type": "array", "items": _ANSWER},
                "version": {"type": "integer"},
            },
        },
    ]
}
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
        }
    },
}
_FEEDBACK = {
    "type": "object",
    "required": ["id", "label"],
    "properties": {"id": {"type": "string"}, "label": _LABEL, "weight": {"type": "number", "minimum": 0}},
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": {"type": "string", "maxLength": 200},
    "description": "A request whose key was answered before is not carried out again: it gets the same answer.",
}


def _operation(summary: str, answer: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    content = {"application/json": {"schema": answer or {"type": "object"}}}
    return {
        "summary": summary,
        "responses": {
            "200": {"description": "The answer.", "content": content},
            "default": {"description": "An error.", "content": {"application/json": {"schema": _ERROR}}},
        },
        **more,
    }


def _parameter(name: str, kind: str, description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": {"type": kind}, "description": description}


def _records(extra: dict[str, Any]) -> dict[str, Any]:
    envelope = {
        "type": "object",
        "required": ["records"],
        "properties": {"records": {"type": "array", "items": _RECORD}, **extra},
    }
    schema = {"oneOf": [_RECORD, {"type": "array", "items": _RECORD}, envelope]}
    content: dict[str, Any] = {"application/json": {"schema": schema}}
    for name, format in FORMATS.items():
        if name and format != "json":
            content[name] = {"schema": {"type": "string", "description": f"A file of {format}."}}
    return {"required": True, "content": content}


@cache
def document() -> dict[str, Any]:
    """The document."""
    from sketchnewton import __version__

    array = {"type": "array", "items": _LABEL}
    predict = _operation(
        "Predict one record or many.",
        _ANSWERS,
        requestBody=_records({"ids": {"type": "array", "items": {"type": "string"}}}),
        parameters=[
            _parameter("id", "string", "Remember the record by this id until its label comes."),
            _parameter("remember", "boolean", "Remember the records, by ids that are made for them."),
            _parameter("explain", "boolean", "Say what each feature adds to the score of one record."),
        ],
    )
    learn = _operation(
        "Learn records with labels; answers the predictions made before.",
        _ANSWERS,
        requestBody=_records({"labels": array, "weights": {"type": "array", "items": {"type": "number"}}}),
        parameters=[_KEY],
    )
    feedback = _operation(
        "The label of a record that was predicted with an id.",
        requestBody={
            "required": True,
            "content": {
                "application/json": {"schema": {"oneOf": [_FEEDBACK, {"type": "array", "items": _FEEDBACK}]}}
            },
        },
        parameters=[_KEY],
    )
    binary = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
    gets = {
        "/v1/model": "What the model is and how it does.",
        "/v1/model/file": "The model, as a file.",
        "/v1/stats": "Figures of this moment.",
        "/v1/stats/history": "Figures of the last hour.",
        "/v1/events": "Figures as server-sent events.",
        "/metrics": "Figures for Prometheus.",
        "/healthz": "Does the process live?",
        "/readyz": "Can it learn?",
        "/v2/health/live": "Open Inference Protocol: does the process live?",
        "/v2/health/ready": "Open Inference Protocol: can it answer?",
    }
    paths: dict[str, Any] = {path: {"get": _operation(summary)} for path, summary in gets.items()}
    paths["/v1/predict"] = {"post": predict}
    paths["/v1/learn"] = {"post": learn}
    paths["/v1/feedback"] = {"post": feedback}
    paths["/v1/model/save"] = {"post": _operation("Write a snapshot now.")}
    paths["/v1/model/load"] = {
        "post": _operation("Put another model in the place of this one.", requestBody=binary)
    }
    name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
    tensors = {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}
    paths["/v2/models/{name}"] = {"get": _operation("Open Inference Protocol: metadata.", parameters=[name])}
    paths["/v2/models/{name}/infer"] = {
        "post": _operation("Open Inference Protocol: predict.", parameters=[name], requestBody=tensors)
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "sketchnewton", "version": str(__version__), "license": {"name": "BSD-3-Clause"}},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}, {}],
    }
