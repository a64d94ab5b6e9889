# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Documents to JSON and back: json_round_trip.py ROUNDS."""
import json
import sys

document = {f"key {i}": {"values": list(range(i % 40)), "text": "x" * (i % 70), "flag": i % 2 == 0} for i in range(400)}
for _ in range(int(sys.argv[1])):
    document = json.loads(json.dumps(document))
print(len(document))
