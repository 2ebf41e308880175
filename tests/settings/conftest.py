from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pytest

from hallporter.domain.errors import InvalidSettingsError
from hallporter.settings import Loaded, load


class Load(Protocol):
    """Loads a home with these sources; the machine has no time zone unless it is given."""

    def __call__(
        self, toml: str = "", dotenv: str = "", environment: Mapping[str, str] | None = None
    ) -> Loaded: ...


class Problems(Protocol):
    """The same for sources that are wrong; gives the lines of the refusal."""

    def __call__(
        self, toml: str = "", dotenv: str = "", environment: Mapping[str, str] | None = None
    ) -> list[str]: ...


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    etc = tmp_path / "etc"
    etc.mkdir()
    return etc


@pytest.fixture
def loaded(tmp_path: Path, etc: Path) -> Load:
    def load_home(
        toml: str = "", dotenv: str = "", environment: Mapping[str, str] | None = None
    ) -> Loaded:
        (tmp_path / "hallporter.toml").write_text(toml)
        (tmp_path / ".env").write_text(dotenv)
        return load(tmp_path, environment or {}, etc=etc)

    return load_home


@pytest.fixture
def problems(loaded: Load) -> Problems:
    def load_wrong(
        toml: str = "", dotenv: str = "", environment: Mapping[str, str] | None = None
    ) -> list[str]:
        with pytest.raises(InvalidSettingsError) as caught:
            loaded(toml, dotenv, environment)
        return caught.value.message.splitlines()

    return load_wrong
