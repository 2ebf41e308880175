"""What an operator's request must be: known keys only, and words that can be stored."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator


class Body(BaseModel):
    """A misspelt key must not be taken for silence: something else than was meant would happen."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _has_whole_characters(cls, value: Any) -> Any:  # noqa: ANN401  it is not yet anything
        # JSON can spell half of a surrogate pair; no database takes it.
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("half of a character: a surrogate without its other half") from None
        return value
