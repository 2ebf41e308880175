from __future__ import annotations

import resource
from pathlib import Path

from tests.journeys.host import running


async def test_the_host_takes_all_file_handles_that_it_may_have(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))  # what the host begins with
    try:
        async with running(tmp_path / "home", {"HALLPORTER_AGENT__SANDBOX": "process"}) as host:
            limits = resource.prlimit(host.process.pid, resource.RLIMIT_NOFILE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert limits == (hard, hard)
