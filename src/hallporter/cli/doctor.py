"""`hallporter doctor`: what is wrong, what to do about it, and with --fix what was done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hallporter.cli import screen
from hallporter.cli.shell import AsJson, shell_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from hallporter.cli.host import Client

_OPENED = "home"  # what opening it may mend; the rest may change by itself between two looks
_INDENT = " " * 10
_MARKS = {"ok": "ok      ", "warning": "warning ", "problem": "PROBLEM "}


def examine(
    context: typer.Context,
    *,
    is_mending: Annotated[
        bool, typer.Option("--fix", help="Mend what can safely be mended, and say what was.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Look at everything that can be wrong; exit 1 when something is."""
    found = _examination(shell_of(context).home, is_mending=is_mending)
    if as_json:
        screen.show_json(found)
    else:
        _show(found)
    raise typer.Exit(0 if found["is_well"] else 1)


def _examination(home: Path, *, is_mending: bool) -> dict[str, Any]:
    """First from outside: a home that cannot be opened has no host to ask."""
    from hallporter.api.doctor import finding_json
    from hallporter.cli import host
    from hallporter.domain.errors import HallporterError
    from hallporter.service import survey

    async def ask(client: Client) -> Any:  # noqa: ANN401  JSON
        if is_mending:
            return (await client.post("/api/doctor", {}))["data"]
        return (await client.get("/api/doctor"))["data"]

    before = [finding_json(one).model_dump() for one in survey(home, is_mending=is_mending)]
    try:
        told: dict[str, Any] = host.ask(home, ask)
    except* (HallporterError, OSError) as errors:
        told = _closed(before, str(_first(errors)))
    else:
        told["findings"] = [*_mended(before, told["findings"]), *told["findings"]]
    return told


def _first(errors: BaseExceptionGroup[Exception]) -> BaseException:
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _mended(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """What was wrong before the home was opened and is not now: opening it makes what is lacking
    and closes what is open."""
    still = {_key(one) for one in after}
    bad = [one for one in before if one["about"] == _OPENED and one["level"] != "ok"]
    gone = [one for one in bad if _key(one) not in still]
    return [{**one, "mended": one["mended"] or "mended by opening the home"} for one in gone]


def _closed(before: Sequence[Mapping[str, Any]], why: str) -> dict[str, Any]:
    findings = list(before)
    if not any(one["level"] == "problem" and not one["mended"] for one in before):
        findings.append(_finding("host", "problem", why, "mend what it says"))
    seen = {one["about"] for one in before}
    unseen = [what for what in ("disk", "clock", "port") if what not in seen]
    what = f"{', '.join([*unseen, 'sandboxes'])} and agents were not looked at"
    findings.append(_finding("host", "warning", what, "mend the problems, then look again"))
    return {"is_well": False, "findings": findings, "settings": []}


def _finding(about: str, level: str, what: str, do: str) -> dict[str, Any]:
    return {
        "about": about,
        "level": level,
        "what": what,
        "do": do,
        "can_fix": False,
        "mended": "",
    }


def _key(finding: Mapping[str, Any]) -> tuple[str, str]:
    return finding["about"], finding["what"]


def _show(found: Mapping[str, Any]) -> None:
    for finding in found["findings"]:
        mark = "mended  " if finding["mended"] else _MARKS[finding["level"]]
        screen.show(_indented(f"{mark}{finding['about']}: {finding['what']}"))
        if finding["mended"]:
            screen.show(_INDENT + _indented(finding["mended"]))
        elif finding["do"]:
            safe = " (doctor --fix does it)" if finding["can_fix"] else ""
            screen.show(_INDENT + _indented(f"{finding['do']}{safe}"))
    rows = [
        (one["key"], one["value"], one["origin"], one["acts"])
        for one in found["settings"]
        if not one["is_default"]
    ]
    if rows:
        screen.show("")
        screen.show_table(("setting", "value", "from", "a change acts"), rows)
    if found["settings"]:
        count = len(found["settings"]) - len(rows)
        screen.show(f"\n{count} settings have their default; a change acts at the next start.")
    screen.show(f"\n{_verdict(found)}")


def _verdict(found: Mapping[str, Any]) -> str:
    if not found["is_well"]:
        return "Something is wrong: see above."
    levels = [one["level"] for one in found["findings"] if not one["mended"]]
    match levels.count("warning"):
        case 0:
            return "All is well."
        case 1:
            return "Nothing is broken. There is 1 warning: see above."
        case count:
            return f"Nothing is broken. There are {count} warnings: see above."


def _indented(text: str) -> str:
    """SQLite tells its findings in several lines."""
    return f"\n{_INDENT}".join(text.splitlines())
