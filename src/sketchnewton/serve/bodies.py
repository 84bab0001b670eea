"""Request bodies into records: JSON here, all other formats by the readers of files."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, TypeAlias, cast

from sketchnewton.core.types import Json
from sketchnewton.serve.errors import ApiError
from sketchnewton.streams.encoded import Encoded

__all__ = ["FORMATS", "Body", "Records", "decode", "format_of", "read_json", "records_of", "split"]

Records: TypeAlias = "dict[str, Json] | list[dict[str, Json]] | Encoded"
"""As `Model` takes them."""

JSON_FORMAT = "json"
FORMATS = {
    "": JSON_FORMAT,
    "application/json": JSON_FORMAT,
    "text/json": JSON_FORMAT,
    "application/x-ndjson": "jsonl",
    "application/ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "application/x-jsonlines": "jsonl",
    "text/csv": "csv",
    "application/csv": "csv",
    "text/tab-separated-values": "tsv",
    "text/vw": "vw",
    "text/x-vw": "vw",
    "text/plain": "vw",
    "application/x-vw": "vw",
    "text/svmlight": "svmlight",
    "text/x-svmlight": "svmlight",
    "application/vnd.apache.arrow.stream": "arrow",
}
"""The format of each content type; the formats of files by their names, and JSON."""

_ENVELOPE = {"record", "records", "label", "labels", "weight", "weights", "id", "ids"}
_CONSTANTS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_LONGEST_ID = 256


class Body(NamedTuple):
    """Records, and what came beside them."""

    format: str
    records: Records
    single: bool = False
    """Whether there is one record and not a list, so that there is one answer and not a list."""
    labels: list[Json] | None = None
    weights: list[float] | None = None
    ids: list[str] | None = None


@lru_cache(64)
def format_of(content_type: str) -> str:
    """The format of a content type."""
    kind, _, parameters = content_type.partition(";")
    found = FORMATS.get(kind.strip().lower())
    if found is None:
        known = ", ".join(name for name in FORMATS if name)
        raise ApiError(
            415, "content_type", f"content type {kind.strip()[:60]!r} is unknown: use one of {known}"
        )
    charset = parameters.lower().replace('"', "").replace(" ", "")
    if "charset=" in charset and not charset.endswith(("charset=utf-8", "charset=utf8", "charset=us-ascii")):
        raise ApiError(415, "content_type", "text must be UTF-8")
    return found


def decode(format: str, data: bytes, most_rows: int) -> Body:
    """The records of a body; `ApiError` if it is none."""
    if not data:
        raise ApiError(400, "no_records", "the body is empty: expected records")
    if format == JSON_FORMAT:
        return _decode_json(data, most_rows)
    if format != "arrow" and data.count(b"\n") > most_rows + 1:
        raise _too_many(most_rows)
    return Body(format, Encoded(data, format, "body"))


def records_of(format: str, data: bytes) -> Body:
    """The records of a body that was accepted before."""
    return decode(format, data, 1 << 62)


def read_json(data: bytes) -> Json:
    """JSON without a key that comes twice in an object."""
    try:
        text = data.decode()
        if text[:1] == "{" and text[-1] == "}":  # as most are
            try:
                found, end = _scan(text, 0)
                if end == len(text):
                    return found
            except StopIteration:
                pass  # told properly below
        decoded: Json = _DECODER.decode(text.removeprefix("\ufeff"))
        return decoded
    except UnicodeDecodeError as error:
        raise ApiError(400, "bad_json", f"expected UTF-8 at byte {error.start + 1} of the body") from None
    except json.JSONDecodeError as error:
        message = f"body:{error.lineno}:{error.colno}: expected JSON: {error.msg[0].lower()}{error.msg[1:]}"
        raise ApiError(400, "bad_json", message) from None
    except RecursionError:
        raise ApiError(400, "bad_json", "expected fewer objects within objects") from None
    except ValueError:
        raise ApiError(400, "bad_json", "expected finite numbers, got one of thousands of digits") from None


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    made = dict(pairs)
    if len(made) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise ApiError(400, "bad_json", f"expected one value for {twice[:80]!r}, got two")
    return made


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_CONSTANTS.__getitem__)
_scan: Callable[[str, int], tuple[Json, int]] = _DECODER.scan_once  # type: ignore[attr-defined]


def _decode_json(data: bytes, most_rows: int) -> Body:
    found = read_json(data)
    if isinstance(found, dict):
        body = Body(JSON_FORMAT, found, single=True)
        if "records" in found and found.keys() <= _ENVELOPE and isinstance(found["records"], list):
            body = _several(found)
        elif "record" in found and found.keys() <= _ENVELOPE and isinstance(found["record"], dict):
            body = _one(found)
    elif isinstance(found, list):
        body = Body(JSON_FORMAT, cast("Records", found))
    else:
        raise ApiError(400, "bad_body", f"expected a record or a list of records, got {_kind(found)}")
    if not body.single:
        _check_records(cast("list[Json]", body.records), most_rows)
    return body


def _check_records(records: list[Json], most_rows: int) -> None:
    if not records:
        raise ApiError(400, "no_records", "the list of records is empty")
    if len(records) > most_rows:
        raise _too_many(most_rows)
    for number, record in enumerate(records, 1):
        if not isinstance(record, dict):
            raise ApiError(400, "bad_body", f"record {number}: expected an object, got {_kind(record)}")


def _several(found: dict[str, Json]) -> Body:
    records = cast("list[dict[str, Json]]", found["records"])
    for name in ("record", "label", "weight", "id"):
        if name in found:
            raise ApiError(400, "bad_body", f"expected '{name}s' beside 'records', got '{name}'")
    lists = {}
    for name in ("labels", "weights", "ids"):
        values = found.get(name)
        if values is not None and (not isinstance(values, list) or len(values) != len(records)):
            raise ApiError(400, "bad_body", f"expected {name} as a list with one for each of the records")
        lists[name] = values
    ids = None if lists["ids"] is None else [checked_id(value) for value in lists["ids"]]
    if ids is not None and len(set(ids)) != len(ids):
        raise ApiError(400, "bad_body", "expected ids that differ from one another")
    return Body(JSON_FORMAT, records, False, lists["labels"], _weights(lists["weights"]), ids)


def _one(found: dict[str, Json]) -> Body:
    for name in ("records", "labels", "weights", "ids"):
        if name in found:
            raise ApiError(400, "bad_body", f"expected '{name[:-1]}' beside 'record', got '{name}'")
    return Body(
        JSON_FORMAT,
        cast("Records", found["record"]),
        True,
        [found["label"]] if "label" in found else None,
        _weights([found["weight"]]) if "weight" in found else None,
        [checked_id(found["id"])] if found.get("id") is not None else None,
    )


def _weights(values: list[Json] | None) -> list[float] | None:
    if values is None:
        return None
    checked: list[float] = []
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ApiError(400, "bad_body", f"expected a number as a weight, got {_kind(value)}")
        if not 0.0 <= value < math.inf:
            raise ApiError(400, "bad_body", "expected a weight that is finite and not negative")
        checked.append(value)
    return checked


def checked_id(value: object) -> str:
    """An id that was given: a text or a whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not 1 <= len(value) <= _LONGEST_ID or "\0" in value:
        raise ApiError(400, "bad_id", f"expected an id of 1 to {_LONGEST_ID} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ApiError(400, "bad_id", "expected an id of valid characters") from None
    return value


def split(body: Body, rows: int) -> list[tuple[str, bytes]]:
    """Format and bytes of each record, to be remembered one by one."""
    records = body.records
    if not isinstance(records, Encoded):
        listed = [records] if isinstance(records, dict) else records
        return [(JSON_FORMAT, json.dumps(record).encode()) for record in listed]
    if body.format in ("vw", "jsonl"):
        lines = [line for line in records.data.split(b"\n") if line.strip()]
        if len(lines) == rows:
            return [(body.format, line + b"\n") for line in lines]
    if rows == 1:
        return [(body.format, records.data)]
    raise ApiError(
        400,
        "not_remembered",
        f"records of {body.format} are remembered one by one: send one in a request, or JSON",
    )


def _too_many(most: int) -> ApiError:
    return ApiError(413, "too_many_rows", f"there are more than {most} records: send fewer in a request")


def _kind(value: object) -> str:
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list"}
    return "null" if value is None else kinds.get(type(value), "an object")
