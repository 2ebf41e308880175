from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.front import Front, open_front


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[Front]:
    async with open_front(tmp_path) as opened:
        yield opened
