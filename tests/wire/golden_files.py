"""The golden files and schemas: the protocol as other people have read it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

_HERE = Path(__file__).parent


def golden(name: str) -> bytes:
    return (_HERE / "golden" / name).read_bytes()


def assert_fits(document: bytes, schema: str) -> None:
    jsonschema.validate(
        json.loads(document), json.loads((_HERE / "schemas" / f"{schema}.json").read_bytes())
    )
