"""The home that is backed up, the file, and where it is unpacked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hallporter.stores.backup import Source
from tests.archive.furnished import make_home


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return asyncio.run(make_home(tmp_path / "home"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "backup.tar.gz"


@pytest.fixture
def into(tmp_path: Path) -> Path:
    return tmp_path / "unpacked"
