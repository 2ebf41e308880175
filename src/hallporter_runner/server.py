"""The MCP server `nanoclaw`: the host's tools for any agent that speaks MCP over stdio."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from mcp import types
from mcp.server import Server
from mcp.server.stdio import stdio_server

from hallporter_runner.mail import Mail
from hallporter_runner.tools import TOOLS, Tool, ToolError
from hallporter_runner.toolset import Toolset

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from hallporter_runner.workplace import Workplace

NAME = "nanoclaw"  # so that clients call the tools mcp__nanoclaw__send_message and so on
_IS_MAIN = "HALLPORTER_IS_MAIN"  # 1 or 0, from `isMain` of the agent's stdin; unset: unknown


def serve(workplace: Workplace) -> int:
    """Serve until stdin ends; the exit code."""
    is_main = {"1": True, "true": True, "0": False, "false": False}.get(
        os.environ.get(_IS_MAIN, "").lower()
    )
    asyncio.run(_serve(Toolset(Mail(workplace.ipc), is_main=is_main)))
    return 0


async def _serve(toolset: Toolset) -> None:
    async def list_tools(
        _context: ServerRequestContext, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in TOOLS.values()])

    async def call_tool(
        _context: ServerRequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        # In a thread: a host that is slow to answer one call must not hold up the next.
        return await asyncio.to_thread(_called, toolset, params)

    server = Server(NAME, on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _described(tool: Tool) -> types.Tool:
    return types.Tool(name=tool.name, description=tool.says, input_schema=tool.schema())


def _called(toolset: Toolset, params: types.CallToolRequestParams) -> types.CallToolResult:
    try:
        outcome = toolset.call(params.name, params.arguments or {})
    except ToolError as error:
        return types.CallToolResult(content=[_text(str(error))], is_error=True)
    return types.CallToolResult(
        content=[_text(outcome.text)], structured_content=dict(outcome.data)
    )


def _text(words: str) -> types.TextContent:
    return types.TextContent(type="text", text=words)
