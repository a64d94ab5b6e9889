# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
client COMMAND FOLDER: starts `COMMAND mcp FOLDER` and makes the calls of standard input, a list of [tool, arguments], by the
official client. Prints {"tools", "prompts", "calls": [[is_error, text], ...]}.
"""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters


async def main():
    server = StdioServerParameters(command=sys.argv[1], args=["mcp", sys.argv[2]], env={**os.environ})
    async with Client(server) as client:
        tools = {tool.name: tool.annotations.read_only_hint for tool in (await client.list_tools()).tools}
        prompts = {}
        for prompt in (await client.list_prompts()).prompts:
            prompts[prompt.name] = (await client.get_prompt(prompt.name)).messages[0].content.text
        calls = []
        for name, arguments in json.load(sys.stdin):
            result = await client.call_tool(name, arguments)
            calls.append([bool(result.is_error), result.content[0].text if result.content else ""])
        print(json.dumps({"tools": tools, "prompts": prompts, "calls": calls}))


asyncio.run(main())
