"""An agent that has the host's tools by MCP: a real client in the box, and the host's own server.

It finds both by what docs/tools.md says, and the client passes none of its variables on.
"""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import sys

SERVER = pathlib.Path(os.environ["HALLPORTER_MCP"])
sys.path[:0] = map(str, sorted((SERVER.parents[1] / "packages").glob("*")))

from mcp.client.client import Client  # noqa: E402  where it is has only just become known
from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: E402


async def use_tools() -> list[object]:
    async with Client(stdio_client(StdioServerParameters(command=str(SERVER)))) as client:
        assert client.server_info is not None
        sent = await client.call_tool("send_message", {"text": "half done"})
        task = {"schedule_type": "once", "schedule_value": "2099-01-01T09:00:00"}
        made = await client.call_tool("schedule_task", {"prompt": "water the plants", **task})
        barred = await client.call_tool("refresh_groups", {})
        id = made.structured_content["task_id"]
        return [client.server_info.name, sent.is_error, id, barred.is_error]


def main() -> None:
    start = json.load(sys.stdin)
    told = asyncio.run(use_tools())
    block = {"status": "success", "result": json.dumps(told), "idle": True}
    block["through"] = start["through"]
    sys.stdout.write(
        f"---NANOCLAW_OUTPUT_START---\n{json.dumps(block)}\n---NANOCLAW_OUTPUT_END---\n"
    )
    sys.stdout.flush()


main()
