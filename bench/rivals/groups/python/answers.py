"""Asks `forebay aggregate` every function over random tables in files of every kind, and holds its answers against those
of DuckDB.

usage: answers.py check FOREBAY FOLDER FIRST_SEED SEEDS
       answers.py golden FOLDER

A seed that fails is printed, its files stay in the folder, and the program fails. `golden` writes small files and what
DuckDB answers of them, for tests that have no DuckDB.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
from decimal import Decimal, InvalidOperation

import tables
from questions import QUESTIONS, texts

# What groups are grouped by.
BY = [["k"], ["k"], ["k"], ["g"], ["b"], ["y"], ["q"], ["t"], ["f"], ["s", "b"], ["k", "g"], ["n", "k", "b"]]
GOLDEN_SEED, GOLDEN_ROWS = 28, 40
GOLDEN_BY, GOLDEN_COLUMNS = [["k"], ["b"]], 3
DIFFERENCES_SHOWN = 5
JSON_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?")


class Figure(str):
    """A number of JSON, as it was written."""


def expected(con, kind, by, questions, is_cube):
    """What DuckDB answers: answers by group."""
    # Without a value a field of csv and tsv is empty, which is a text.
    keys = [f"coalesce({texts(key)}, '')" if kind in ("csv", "tsv") else texts(key) for key in by]
    names = [f"key{at}" for at in range(len(by))]
    grouped = ", ".join(f"{key} as {name}" for key, name in zip(keys, names))
    con.execute(f"create or replace temp table grouped as select {grouped}, * from shaped")
    listed = ", ".join(names)
    asked = [f"grouping({listed})" if is_cube else "0"] + [f"{theirs} as a{at}" for at, (_, theirs, _) in enumerate(questions)]
    rows = con.execute(f"select {listed}, {', '.join(asked)} from grouped group by {'cube' if is_cube else ''} ({listed})")
    width = len(by)
    answers = {}
    for row in rows.fetchall():
        cells = [make(cell) for (_, _, make), cell in zip(questions, row[width + 1 :])]
        answers[key_of(by, row[:width], row[width])] = cells
    return answers


def key_of(by, cells, grouping):
    """A group, so that it is found again whatever its numbers are written as."""
    return (grouping, *(canonical(cell) if name == "f" else cell for name, cell in zip(by, cells)))


def canonical(text):
    try:
        return format(Decimal(text).normalize(), "f")
    except (InvalidOperation, TypeError, ValueError):
        return text


def found(lines, by, questions, is_cube):
    """What the command answers, of the lines that it wrote."""
    answers = {}
    for line in lines:
        cells = json.loads(line, parse_float=Figure, parse_int=Figure)
        key = key_of(by, [cells[name] for name in by], int(cells["grouping"]) if is_cube else 0)
        answers[key] = [cells[ours] for ours, _, _ in questions]
    return answers


def is_number(one, other):
    try:
        return Decimal(one) == Decimal(other) or Decimal(one).is_nan() and Decimal(other).is_nan()
    except (InvalidOperation, TypeError):
        return False


def is_same(answer, wanted):
    match wanted:
        case {"number": text}:
            return answer is not None and is_number(answer, text)
        case {"from": low, "to": high}:
            try:
                return low <= float(answer) <= high
            except (TypeError, ValueError):
                return False
        case {"numbers": items}:
            return isinstance(answer, list) and len(answer) == len(items) and all(map(is_number, answer, items))
        case {"pairs": items}:
            return isinstance(answer, list) and len(answer) == len(items) and all(
                (str(one[0]) == other[0] or is_number(one[0], other[0])) and is_number(one[1], other[1])
                for one, other in zip(answer, items)
            )
        case {"some": count, "of": items}:
            return isinstance(answer, list) and len(answer) == count and all(item in items for item in answer)
        case dict():
            return not wanted or answer == wanted
        case None | bool():
            return answer is wanted
        case list():
            return answer == wanted
    return not isinstance(answer, Figure) and answer == wanted


def ask(forebay, folder, file, by, questions, options):
    """Runs the command, which writes its answers as JSON."""
    out = f"{folder}/found.jsonl"
    command = [forebay, "aggregate", file, "--by", "column:" + ",".join(by), "--out", out, "--temp", folder, *options]
    command += ["--fn", ",".join(ours for ours, _, _ in questions)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        raise ValueError(f"the command failed: {run.stderr.strip()}")
    with open(out, encoding="utf-8") as lines:
        return found(lines, by, questions, "--cube" in options)


def differences(answers, wanted, questions):
    for key in wanted.keys() - answers.keys():
        yield f"group {key!r} is missing"
    for key in answers.keys() - wanted.keys():
        yield f"group {key!r} is not DuckDB's"
    for key in wanted.keys() & answers.keys():
        for (ours, theirs, _), answer, cell in zip(questions, answers[key], wanted[key]):
            if not is_same(answer, cell):
                yield f"{ours} of {key!r} is {answer!r}, and DuckDB's {theirs} {cell!r}"


def check_seed(forebay, folder, seed):
    draws = random.Random(seed)
    con = tables.connection()
    tables.make(con, draws, draws.choice([1, 7, 60, 500, 3000]))
    told = []
    for kind in tables.KINDS:
        tables.shape(con, kind)
        file = f"{folder}/rows.{kind}"
        tables.write(con, draws, kind, file)
        by = draws.choice(BY)
        options = ["--threads", str(draws.randrange(1, 5))]
        # Few functions go by columns where all of them can; states of all at once are long.
        questions = QUESTIONS if draws.random() < 0.5 else draws.sample(QUESTIONS, draws.randrange(1, 6))
        if draws.random() < 0.3 and questions is not QUESTIONS:
            options += ["--memory", "3M"]
        if len(by) > 1 and draws.random() < 0.5:
            options += ["--cube"]
        if draws.random() < 0.2:
            shutil.rmtree(f"{folder}/store", ignore_errors=True)
            options += ["--store", f"{folder}/store", "--memory", "64M"] if "--memory" not in options else []
        try:
            answers = ask(forebay, folder, file, by, questions, options)
            told += [
                f"seed {seed}, {kind}, by {','.join(by)}, {' '.join(options)}: {what}"
                for what in differences(answers, expected(con, kind, by, questions, "--cube" in options), questions)
            ]
        except ValueError as error:
            told.append(f"seed {seed}, {kind}, by {','.join(by)}: {error}")
    return told


def check(forebay, folder, first, seeds):
    os.makedirs(folder, exist_ok=True)
    print(f"seeds {first} to {first + seeds - 1}, {len(QUESTIONS)} functions", flush=True)
    for seed in range(first, first + seeds):
        told = check_seed(forebay, folder, seed)
        if told:
            print("\n".join(told[:DIFFERENCES_SHOWN]))
            print(f"{len(told)} differences; the files stay in {folder}")
            sys.exit(1)
    shutil.rmtree(folder)
    print("every answer is DuckDB's")


def golden(folder):
    """Files of every kind; and for each kind, and what it is grouped by, the functions, then a line a group: its key,
    and the answers. Of each function some columns are asked."""
    draws = random.Random(GOLDEN_SEED)
    con = tables.connection()
    tables.make(con, draws, GOLDEN_ROWS)
    names = {ours.split(":")[0]: [] for ours, _, _ in QUESTIONS}
    for question in draws.sample(QUESTIONS, len(QUESTIONS)):
        names[question[0].split(":")[0]].append(question)
    questions = [question for asked in names.values() for question in asked[:GOLDEN_COLUMNS]]
    with open(f"{folder}/expected.jsonl", "w", encoding="utf-8") as out:
        for kind in tables.KINDS:
            tables.shape(con, kind)
            tables.write(con, draws, kind, f"{folder}/random.{kind}")
            for by in GOLDEN_BY:
                head = {"kind": kind, "by": by, "functions": [ours for ours, _, _ in questions]}
                out.write(json.dumps(head) + "\n")
                answers = expected(con, kind, by, questions, False)
                for (_, *key), cells in sorted(answers.items(), key=repr):
                    out.write(f"[{json.dumps(key)},{','.join(map(shortly, cells))}]\n")


def shortly(cell):
    """A number that JSON has stands for itself."""
    match cell:
        case {"number": text} if JSON_NUMBER.fullmatch(text):
            return text
        case {"from": low, "to": high} if low == high:
            return repr(low)
    return json.dumps(cell, separators=(",", ":"))


def main(what, *arguments):
    if what == "golden":
        return golden(*arguments)
    forebay, folder, first, seeds = arguments
    check(forebay, folder, int(first), int(seeds))


if __name__ == "__main__":
    main(*sys.argv[1:])
