# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Lines of a log taken apart by regular expressions: regex_scan.py ROUNDS."""
import re
import sys

LINE = re.compile(r"(?P<host>\S+) \[(?P<time>[^\]]+)\] \"(?P<verb>GET|POST) (?P<path>[^\"]*)\" (?P<status>\d{3})")
WORD = re.compile(r"[a-z]+|\d+")
lines = [f"host-{i % 83}.example [0{i % 10}/Nov] \"{'POST' if i % 3 else 'GET'} /item/{i}/page{i % 17}\" {200 + i % 5}"
         for i in range(1000)]
found = 0
for _ in range(int(sys.argv[1])):
    by_host = {}
    for line in lines:
        fields = LINE.match(line).groupdict()
        by_host.setdefault(fields["host"], []).append(WORD.findall(fields["path"]))
        found += len(WORD.sub("*", fields["time"]))
print(found, len(by_host))
