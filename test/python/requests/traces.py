# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Requests in spans of OpenTelemetry; prints the trace and the span of each, in JSON."""

import asyncio
import json

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

import torsh

trace.set_tracer_provider(TracerProvider())
tracer = trace.get_tracer("program")
HEADER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
spans = {"without": [None, None], "header": ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"], "bad header": [None, None]}


async def serve(name):
    with tracer.start_as_current_span(name) as span:
        context = span.get_span_context()
        spans[name] = ["%032x" % context.trace_id, "%016x" % context.span_id]
        with torsh.request(name):
            await asyncio.sleep(0)


async def main():
    await asyncio.gather(*(serve(f"span {n}") for n in range(3)))


asyncio.run(main())
with torsh.request("without"):
    pass
with torsh.request("header", HEADER):
    pass
with torsh.request("bad header", HEADER.replace("b7ad", "B7AD")):
    pass
print(json.dumps(spans))
