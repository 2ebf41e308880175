from __future__ import annotations

from pathlib import Path

import httpx

from tests.cli.command import hallporter
from tests.journeys.host import running


async def test_a_link_opens_the_page_of_the_running_host_once(tmp_path: Path) -> None:
    async with running(tmp_path) as host, httpx.AsyncClient() as browser:
        printed = await hallporter(tmp_path, "link")
        told = await hallporter(tmp_path, "link", "--json")
        url = printed.out.strip()
        assert printed.code == told.code == 0
        assert url.startswith(f"{host.url}/enter/")
        assert "once" in printed.err
        assert set(told.json) == {"url", "expires"}
        assert told.json["url"] != url
        assert (await browser.get(url)).status_code == 200
        assert (await browser.get(url)).status_code == 401


async def test_what_up_prints_is_not_in_the_log(tmp_path: Path) -> None:
    async with running(tmp_path) as host:
        secret = (await host.printed()).split("/enter/")[1].split()[0]
        async with httpx.AsyncClient() as browser:
            assert (await browser.get(f"{host.url}/enter/{secret}")).status_code == 200
    assert len(secret) > 40
    assert secret not in host.tail()
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path


async def test_without_a_host_there_is_no_link(tmp_path: Path) -> None:
    done = await hallporter(tmp_path, "link")
    assert done.code == 1
    assert "hallporter up" in done.err
