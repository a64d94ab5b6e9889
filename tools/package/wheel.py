#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
wheel.py VERSION PLATFORM STAGE LICENCES DIST: makes DIST/torsh-VERSION-py3-none-PLATFORM.whl from the files that `make install` put into STAGE.

The command becomes a script of the wheel unchanged, without a Python wrapper; Python's modules go to the top, and the
rest below the environment's prefix, where `make install` puts it. LICENCES is a folder with the licences of statically
linked libraries. Times are SOURCE_DATE_EPOCH, or 1980.
"""

import base64
import hashlib
import os
import pathlib
import stat
import sys
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
METADATA = """\
Metadata-Version: 2.1
Name: torsh
Version: {version}
Summary: Profile memory, operators and devices of a program that nobody edited
License: Apache-2.0 OR MIT
{licences}
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C
Classifier: Programming Language :: Python :: 3
Requires-Python: >=3.8
Provides-Extra: assistant
Requires-Dist: mcp>=2; extra == "assistant"
Provides-Extra: parquet
Requires-Dist: pyarrow>=12; extra == "parquet"
Provides-Extra: pytest
Requires-Dist: pytest>=8; extra == "pytest"
Description-Content-Type: text/markdown

{readme}"""
WHEEL = """\
Wheel-Version: 1.0
Generator: torsh ({version})
Root-Is-Purelib: false
Tag: py3-none-{platform}
"""
ENTRY_POINTS = """\
[pytest11]
torsh = torsh.pytest_plugin
"""


def place(name, data):
    """Returns the place in the wheel of a file of the prefix."""
    for before, after in (("bin/", f"{data}/scripts/"), ("lib/torsh/python/", "")):
        if name.startswith(before):
            return after + name[len(before):]
    return f"{data}/data/{name}"


class Wheel:
    def __init__(self, path, info):
        self.archive, self.info, self.record = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED), info, []
        self.date = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), 315532800))[:6]

    def add(self, name, content, mode=0o644):
        entry = zipfile.ZipInfo(name, self.date)
        entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, (stat.S_IFREG | mode) << 16
        self.archive.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(content)}")

    def close(self):
        name = f"{self.info}/RECORD"
        self.add(name, "\n".join([*self.record, f"{name},,", ""]).encode())
        self.archive.close()


def main():
    version, platform, *folders = sys.argv[1:]
    stage, linked, dist = map(pathlib.Path, folders)
    dist.mkdir(parents=True, exist_ok=True)
    for old in dist.glob("torsh-*.whl"):
        old.unlink()
    path, info = dist / f"torsh-{version}-py3-none-{platform}.whl", f"torsh-{version}.dist-info"
    wheel = Wheel(path, info)
    for file in sorted(file for file in stage.rglob("*") if file.is_file() and not file.is_symlink()):
        name = place(file.relative_to(stage).as_posix(), f"torsh-{version}.data")
        wheel.add(name, file.read_bytes(), file.stat().st_mode & 0o777)
    own = {path.name: path for path in [*ROOT.glob("LICENSE-*"), *ROOT.glob("tools/export/html/vendor/*LICENSE*")]}
    licences = {**own, **{f"{path.name}-LICENSE": path for path in linked.iterdir()}}
    metadata = METADATA.format(version=version, readme=(ROOT / "README.md").read_text(),
                               licences="\n".join(f"License-File: {name}" for name in sorted(licences)))
    wheel.add(f"{info}/METADATA", metadata.encode())
    wheel.add(f"{info}/WHEEL", WHEEL.format(version=version, platform=platform).encode())
    wheel.add(f"{info}/entry_points.txt", ENTRY_POINTS.encode())
    for name, licence in sorted(licences.items()):
        wheel.add(f"{info}/{name}", licence.read_bytes())
    wheel.close()
    print(path)


main()
