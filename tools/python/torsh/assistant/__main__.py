# SPDX-License-Identifier: Apache-2.0 OR MIT
"""python -m torsh.assistant [FOLDER]: what torsh mcp runs."""

import sys

from torsh.assistant.places import Refused


def fail(text):
    print(f"torsh: {text}", file=sys.stderr)
    sys.exit(2)


def main():
    try:
        import mcp.server.mcpserver  # noqa: F401
    except ImportError:
        fail(f"torsh mcp needs the package mcp, version 2 or later: {sys.executable} -m pip install 'mcp>=2'")
    from torsh.assistant.server import serve

    try:
        serve(sys.argv[1] if len(sys.argv) > 1 else ".")
    except Refused as refusal:
        fail(refusal)


if __name__ == "__main__":
    main()
