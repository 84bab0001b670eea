"""The OpenAPI document: what clients and their generators need to know."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from sketchnewton.serve.bodies import FORMATS

__all__ = ["document"]

Schema = Mapping[str, object]
"""A part of the document."""

_RECORD = {
    "type": "object",
    "additionalProperties": True,
    "example": {"user": "anna", "price": 3.5, "vip": True},
}
_LABEL = {"type": ["number", "string", "boolean"]}
_SCORE = {"type": ["number", "null"], "description": "null: it is too large for a number."}
_ANSWER = {
    "type": "object",
    "required": ["prediction"],
    "properties": {
        "prediction": {"type": ["number", "string", "boolean", "null"]},
        "score": _SCORE,
        "lower": {**_SCORE, "description": "With interval; null: too few rows were learned to tell."},
        "upper": {**_SCORE, "description": "With interval; null: too few rows were learned to tell."},
        "scores": {"type": "object", "additionalProperties": _SCORE},
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
            "required": ["predictions", "version"],
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
_ID = {"type": "string", "minLength": 1, "maxLength": 256}
_FEEDBACK = {
    "type": "object",
    "required": ["id", "label"],
    "properties": {"id": _ID, "label": _LABEL, "weight": {"type": "number", "minimum": 0}},
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": {"type": "string", "maxLength": 200},
    "description": "A request whose key was answered before is not carried out again: it gets the same answer.",
}


def _operation(
    summary: str, answer: Schema | None = None, kind: str = "application/json", **more: object
) -> Schema:
    text = {"type": "object"} if kind == "application/json" else {"type": "string"}
    content = {kind: {"schema": answer or text}}
    return {
        "summary": summary,
        "responses": {
            "200": {"description": "The answer.", "content": content},
            "default": {"description": "An error.", "content": {"application/json": {"schema": _ERROR}}},
        },
        **more,
    }


def _parameter(name: str, kind: str, description: str) -> Schema:
    return {"name": name, "in": "query", "schema": {"type": kind}, "description": description}


def _records(**beside: Schema) -> Schema:
    """A body of records, alone or with what stands beside them, each under its name: labels, weights, ids."""
    several = {f"{name}s": {"type": "array", "items": schema} for name, schema in beside.items()}
    schema = {
        "anyOf": [
            _RECORD,
            {"type": "array", "items": _RECORD, "minItems": 1},
            _envelope("record", _RECORD, beside),
            _envelope("records", {"type": "array", "items": _RECORD, "minItems": 1}, several),
        ]
    }
    content: dict[str, Schema] = {"application/json": {"schema": schema}}
    for name, format in FORMATS.items():
        if name and format != "json":
            content[name] = {"schema": {"type": "string", "description": f"A file of {format}."}}
    return {"required": True, "content": content}


def _envelope(name: str, schema: Schema, beside: Schema) -> Schema:
    properties = {name: schema, **beside}
    return {"type": "object", "required": [name], "properties": properties, "additionalProperties": False}


@cache
def document(model: str) -> Schema:
    """The document; `model` is its name in the Open Inference Protocol."""
    from sketchnewton import __version__

    predict = _operation(
        "Predict one record or many.",
        _ANSWERS,
        requestBody=_records(id=_ID),
        parameters=[
            _parameter("id", "string", "Remember the record by this id until its label comes."),
            _parameter("remember", "boolean", "Remember the records, by ids that are made for them."),
            _parameter(
                "interval", "number", "Add bounds between which this share of labels lies, such as 0.9."
            ),
            _parameter("explain", "boolean", "Say what each feature adds to the score of one record."),
        ],
    )
    learn = _operation(
        "Learn records with labels; answers the predictions made before.",
        _ANSWERS,
        requestBody=_records(label=_LABEL, weight={"type": "number", "minimum": 0}),
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
        "/v1/stats": "Figures of this moment.",
        "/v1/stats/history": "Figures since the start, the older ones further apart: up to 600 of them.",
        "/healthz": "Does the process live?",
        "/readyz": "Can it learn?",
        "/v2/health/live": "Open Inference Protocol: does the process live?",
        "/v2/health/ready": "Open Inference Protocol: can it learn?",
    }
    paths: dict[str, dict[str, Schema]] = {
        path: {"get": _operation(summary)} for path, summary in gets.items()
    }
    for path, summary, kind in (
        ("/v1/model/file", "The model, as a file.", "application/octet-stream"),
        ("/v1/events", "Figures as server-sent events.", "text/event-stream"),
        ("/metrics", "Figures for Prometheus.", "text/plain"),
    ):
        paths[path] = {"get": _operation(summary, kind=kind)}
    paths["/v1/predict"] = {"post": predict}
    paths["/v1/learn"] = {"post": learn}
    paths["/v1/feedback"] = {"post": feedback}
    paths["/v1/model/save"] = {"post": _operation("Write a snapshot now.")}
    paths["/v1/model/load"] = {"post": _operation("Replace this model.", requestBody=binary)}
    inputs = {"type": "array", "items": {"type": "object"}, "minItems": 1}
    schema = {"type": "object", "required": ["inputs"], "properties": {"inputs": inputs}}
    tensors = {"required": True, "content": {"application/json": {"schema": schema}}}
    paths[f"/v2/models/{model}"] = {"get": _operation("Open Inference Protocol: metadata.")}
    paths[f"/v2/models/{model}/infer"] = {
        "post": _operation("Open Inference Protocol: predict.", requestBody=tensors)
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "sketchnewton", "version": str(__version__), "license": {"name": "BSD-3-Clause"}},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}, {}],
    }
