#!/usr/bin/env python3
"""The same command lines to pyarg and to Python's argparse: values, standard output, standard error
and exit status are to be the same, to the byte. `pyarg_test.py PROGRAM`, which is pyarg_answer.c.
The lines: what is printed, at four widths; every word of a list for each table; and some thousands drawn
from it by lot, always the same ones (`pyarg_test.py PROGRAM 20000` draws more)."""

import argparse
import contextlib
import io
import json
import os
import random
import subprocess
import sys

if sys.version_info[:2] not in ((3, 9), (3, 10), (3, 11)):
    print("another Python's argparse has other words")
    sys.exit(77)

PROGRAM = sys.argv[1]
SPECS = json.loads(subprocess.run([PROGRAM, "--specs"], capture_output=True, check=True).stdout)
TYPES = {"str": str, "int": int, "float": float}
DRAWN = int(sys.argv[2]) if len(sys.argv) > 2 else 600


def add(parser, row):
    names = [row["letter"], row["name"]] if row["letter"] else [row["name"]]
    help_text = row["help"] and row["help"].replace("%", "%%")
    more = {"help": argparse.SUPPRESS if row["hidden"] else help_text}
    if row["type"] == "help":
        return
    if row["type"] == "flag":
        more["action"] = "store_true"
    elif row["type"] == "version":
        more |= {"action": "version", "version": row["metavar"]}
    else:
        more |= {"type": TYPES[row["type"]], "metavar": row["metavar"]}
        if row["choices"]:
            more["choices"] = row["choices"].split(",")
        if row["standard"]:
            more["default"] = row["standard"]
    parser.add_argument(*names, **more)


def build(spec):
    parser = argparse.ArgumentParser(prog=spec["prog"], description=spec["about"])
    for row in spec["args"]:
        add(parser, row)
    if spec["commands"]:
        commands = parser.add_subparsers(dest=spec["dest"], required=not spec["needs_no_command"])
        for command in spec["commands"]:
            sub = commands.add_parser(command["name"], help=command["help"])
            for row in command["args"]:
                add(sub, row)
    return parser


def ask_argparse(parser, question):
    os.environ["COLUMNS"] = question["columns"]
    out, err, values, status = io.StringIO(), io.StringIO(), None, 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            values = {name.replace("_", "-"): v for name, v in vars(parser.parse_args(question["argv"])).items()}
        except SystemExit as end:
            status = end.code or 0
    return {"values": values, "status": status, "out": out.getvalue(), "err": err.getvalue()}


def words_of(spec):
    words = ["--", "-", "", "-1", "-1.5", "-.5", "1", "x", "a b", "-a b", "--nix", "-z", "--=1", "-=", "it's"]
    rows = spec["args"] + [row for command in spec["commands"] for row in command["args"]]
    for row in rows:
        name = row["name"]
        if not name.startswith("-"):
            continue
        words += [name, name[:4], name + "=1", name + "=", name[:5] + "=x y"]
        if row["letter"]:
            letter = row["letter"]
            words += [letter, letter + "1", letter + "=1", letter + "q", "-q" + letter[1:], letter + "-"]
        words += (row["choices"] or "").split(",")
    words += [command["name"] for command in spec["commands"]] + [c["name"][:3] for c in spec["commands"]]
    return list(dict.fromkeys(words))


def questions():
    lot = random.Random(1)
    for index, spec in enumerate(SPECS):
        words = words_of(spec)
        for columns in ("80", "40", "133", "20"):
            for argv in [], ["-h"], ["--version"], *([c["name"], "-h"] for c in spec["commands"]):
                yield {"spec": index, "argv": argv, "columns": columns}
        for word in words:
            yield {"spec": index, "argv": [word], "columns": "80"}
        for _ in range(DRAWN):
            argv = [lot.choice(words) for _ in range(lot.randint(2, 6))]
            yield {"spec": index, "argv": argv, "columns": "100"}


def main():
    parsers = [build(spec) for spec in SPECS]
    asked = list(questions())
    text = "".join(json.dumps(q) + "\n" for q in asked)
    told = subprocess.run([PROGRAM], input=text, capture_output=True, text=True, check=True).stdout
    answers = [json.loads(line) for line in told.splitlines()]
    assert len(answers) == len(asked)
    different = 0
    for question, answer in zip(asked, answers):
        right = ask_argparse(parsers[question["spec"]], question)
        if answer["values"]:
            answer["values"] = {name.replace("_", "-"): v for name, v in answer["values"].items()}
        if answer == right:
            continue
        different += 1
        if different <= 20:
            print(SPECS[question["spec"]]["prog"], question["argv"], "at", question["columns"], "columns")
            for key in right:
                if right[key] != answer[key]:
                    print(f"  {key}: argparse {right[key]!r}\n  {' ' * len(key)}     pyarg {answer[key]!r}")
    print(f"{len(asked)} lines, {different} of them read otherwise")
    return 1 if different else 0


sys.exit(main())
