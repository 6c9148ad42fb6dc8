#!/usr/bin/env python3
"""Numbers, texts and JSON to pytext and to Python, which are to read and write them alike.
`pytext_test.py PROGRAM`, which is pytext_answer.c. What is drawn by lot is always the same."""

import json
import random
import struct
import subprocess
import sys

DRAWN = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
LOT = random.Random(1)
LETTERS = "ab '\"\\/\n\r\t\b\f\x01\x1f\x7f\x80\x9f\xa0\xad\xe9ß€\u200b\u2028\u3000\ufeff\ue000漢😀"
NUMBER_PIECES = ["0", "1", "7", "10", "-", "+", ".", "_", "e", "E", "5", " ", "\t", "inf", "nan", "x", "00"]


def number():
    kind = LOT.randrange(5)
    if kind == 0:
        return LOT.randrange(-(10**18), 10**18)
    if kind == 1:
        return LOT.randrange(-100, 1000)
    if kind == 2:
        value = struct.unpack("d", LOT.randbytes(8))[0]
        return value if value - value == 0 else 0.5
    if kind == 3:
        return LOT.randrange(-(10**6), 10**6) / 10 ** LOT.randrange(12)
    return float(10 ** LOT.randrange(-20, 20))


def text():
    return "".join(LOT.choice(LETTERS) for _ in range(LOT.randrange(8)))


def value(depth=0):
    kind = LOT.randrange(8 if depth < 4 else 5)
    if kind < 2:
        return number()
    if kind < 4:
        return text()
    if kind == 4:
        return LOT.choice([None, True, False])
    if kind < 6:
        return [value(depth + 1) for _ in range(LOT.randrange(4))]
    return {text(): value(depth + 1) for _ in range(LOT.randrange(4))}


def read(reader, s):
    try:
        return str(reader(s))
    except ValueError:
        return None


def as_int(s):
    v = int(s)
    if not -(2**63) <= v < 2**63:
        raise ValueError
    return v


def questions():
    for _ in range(DRAWN):
        v = value()
        yield "dumps", json.dumps(v, ensure_ascii=LOT.choice([True, False])), json.dumps(v)
        yield "indent", json.dumps(v), json.dumps(v, indent=4)
        s = text()
        yield "repr", s, repr(s)
        yield "strip", s, s.strip()
        s = "".join(LOT.choice(NUMBER_PIECES) for _ in range(LOT.randrange(1, 6)))
        yield "int", s, read(as_int, s)
        yield "float", s, read(float, s)
        f = number()
        yield "float", repr(f), repr(float(f))


def main():
    asked = list(questions())
    lines = "".join(json.dumps([what, s]) + "\n" for what, s, _ in asked)
    told = subprocess.run([sys.argv[1]], input=lines, capture_output=True, text=True, check=True).stdout
    answers = [json.loads(line) for line in told.split("\n")[:-1]]
    assert len(answers) == len(asked)
    different = 0
    for (what, s, right), answer in zip(asked, answers):
        if answer == right:
            continue
        different += 1
        if different <= 30:
            print(f"{what} of {s!r}: Python {right!r}, pytext {answer!r}")
    print(f"{len(asked)} values, {different} of them otherwise")
    return 1 if different else 0


sys.exit(main())
