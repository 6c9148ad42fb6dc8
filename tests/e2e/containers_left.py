#!/usr/bin/env python3
"""Number of containers that podman's storage in the folder STORE still lists:
`containers_left.py STORE`."""
import glob
import json
import sys

total = 0
for name in glob.glob(sys.argv[1] + "/graph/vfs-containers/*containers.json"):
    with open(name, encoding="utf-8") as file:
        total += len(json.load(file))
print(total)
