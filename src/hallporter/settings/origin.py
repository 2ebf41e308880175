"""Where a setting's value comes from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Source(StrEnum):
    """Strongest first."""

    ENVIRONMENT = "environment"
    DOTENV = ".env"
    FILE = "hallporter.toml"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """`name` is the variable, where there is one."""

    source: Source
    name: str = ""

    def __str__(self) -> str:
        match self.source:
            case Source.ENVIRONMENT:
                return f"{self.name} in the environment"
            case Source.DOTENV:
                return f"{self.name} in .env"
            case Source.FILE:
                return "hallporter.toml"
            case Source.DEFAULT:
                return "the default"
