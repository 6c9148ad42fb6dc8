"""Writes a C file that holds the files named, for berth-web to serve: embed.py OUT FILE..."""
import os
import sys

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def main():
    out, files = sys.argv[1], sys.argv[2:]
    lines = ["/* Made by embed.py. */", '#include "web/pages/asset.h"', ""]
    table = []
    for n, path in enumerate(f for f in files if not f.endswith(".py")):
        with open(path, "rb") as f:
            data = f.read()
        name = os.path.basename(path)
        lines.append(f"static const unsigned char file_{n}[] = {{")
        for i in range(0, len(data), 24):
            lines.append("    " + "".join(f"{b}," for b in data[i : i + 24]))
        lines.append("};")
        kind = TYPES[os.path.splitext(name)[1]]
        table.append(f'    {{"{name}", "{kind}", file_{n}, sizeof file_{n}}},')
    lines += ["", "const struct asset assets[] = {", *table, "    {0},", "};", ""]
    with open(out, "w", encoding="utf-8") as f:
        f.write("\n".join(lines))


main()
