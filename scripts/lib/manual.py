"""Writes the manual pages of the commands in mdoc(7), from the table of commands that the executable prints.

  manual.py GIFREEL DIR     writes DIR/gifreel.1, DIR/gifreel-serve.1, …

The date of the pages is that of $SOURCE_DATE_EPOCH, in seconds since 1970, or today.
"""
import datetime
import json
import os
import re
import subprocess
import sys


def text(words):
    """Text whose lines are not taken for requests."""
    lines = words.replace("\\", "\\e").replace("\n\n", "\n.Pp\n").split("\n")
    return "\n".join("\\&" + line if re.match(r"['.](?!Pp$)", line) else line for line in lines)


def dashes(words):
    return words.replace("-", "\\-")


def names(argument):
    """The spellings of an option: its name with one hyphen or two, and its value."""
    value = "" if argument["kind"] == "flag" else f" Ar {argument.get('valueName', 'value')}"
    spelled = []
    for name in argument.get("names") or []:
        hyphen = "" if name["kind"] in ("short", "longWithSingleDash") else "-"
        spelled.append(f"Fl {dashes(hyphen + name['name'])}{value}")
    return " , ".join(spelled) if spelled else f"Ar {argument.get('valueName', 'value')}"


def page(path, command, references, date):
    name = "-".join(path)
    shown = [each for each in command.get("arguments") or [] if each.get("shouldDisplay", True)]
    out = [f".Dd {date:%B} {date.day}, {date.year}", f".Dt {name.upper()} 1", ".Os", ".Sh NAME", f".Nm {' '.join(path)}",
           f".Nd {text(command.get('abstract', '').rstrip('.'))}", ".Sh SYNOPSIS", f".Nm {' '.join(path)}"]
    for each in shown:
        first = {**each, "names": [each["preferredName"]]} if each.get("preferredName") else each
        dots = " ..." if each.get("isRepeating") else ""
        out.append(f".{'Op ' if each.get('isOptional') else ''}{names(first)}{dots}")
    subcommands = [each for each in command.get("subcommands") or [] if each.get("shouldDisplay", True) and each["commandName"] != "help"]
    if subcommands:
        out.append(".Ar command")
    out += [".Sh DESCRIPTION", text(command.get("abstract", ""))]
    if command.get("discussion"):
        out += [".Pp", text(command["discussion"])]
    described = [*((names(each), each.get("abstract", "")) for each in shown)]
    described += [(f"Xr {name}-{each['commandName']} 1", each.get("abstract", "")) for each in subcommands]
    if described:
        out.append(".Bl -tag -width 6n")
        for term, meaning in described:
            out += [f".It {term}", text(meaning)]
        out.append(".El")
    others = sorted(reference for reference in references if reference != name)
    out += [".Sh SEE ALSO", *(f".Xr {other} 1 ," for other in others), ".Xr gifreel.yaml 5"]
    return "\n".join(out) + "\n"


def main():
    gifreel, folder = sys.argv[1:]
    moment = int(os.environ.get("SOURCE_DATE_EPOCH") or datetime.datetime.now().timestamp())
    date = datetime.datetime.fromtimestamp(moment, datetime.timezone.utc)
    table = json.loads(subprocess.run([gifreel, "--experimental-dump-help"], check=True, capture_output=True).stdout)["command"]
    commands = [each for each in table["subcommands"] if each.get("shouldDisplay", True) and each["commandName"] != "help"]
    pages = {("gifreel",): table, **{("gifreel", each["commandName"]): each for each in commands}}
    # Commands of commands.
    for path, command in list(pages.items())[1:]:
        for each in command.get("subcommands") or []:
            if each["commandName"] != "help":
                pages[(*path, each["commandName"])] = each
    known = ["-".join(path) for path in pages]
    os.makedirs(folder, exist_ok=True)
    for path, command in pages.items():
        # A page refers to all pages from that of the program, and otherwise to the program and its own commands.
        name = "-".join(path)
        related = known if len(path) == 1 else [other for other in known if other == "gifreel" or other.startswith(name + "-") or name.startswith(other + "-")]
        with open(os.path.join(folder, name + ".1"), "w") as file:
            file.write(page(path, command, related, date))


if __name__ == "__main__":
    main()
