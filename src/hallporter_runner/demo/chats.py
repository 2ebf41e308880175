"""Words for other chats, and new groups: what the demo agent does for the main chat."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hallporter_runner.demo.visit import END, Answer, Skill, Visit, say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def _tell(visit: Visit, match: re.Match[str]) -> Answer | None:
    said = match["what"].strip()
    if re.match(r"(?:me|us)\b", said, re.IGNORECASE):
        return None
    group, words = _addressed(visit.toolset.groups(), said)
    if group is None:
        known = "`groups` lists the chats that I know."
        if not visit.is_main:
            known = "This is not the main chat, and only from there I may write to others."
        return say(f"I know no chat to tell that. {known}")
    if not words:
        return say(f"Tell {_name(group)} what?")
    visit.toolset.call("send_message", {"text": words, "target_jid": group.get("jid")})
    return say(f"I have told {_name(group)}: {words}")


def _addressed(
    groups: Sequence[Mapping[str, object]], said: str
) -> tuple[Mapping[str, object] | None, str]:
    """The chat that a text begins with, by name, folder or id, and what it is to be told."""
    bare = said.lstrip("\"'“`")
    called = [
        (str(name), group)
        for group in groups
        for name in (group.get("jid"), group.get("folder"), group.get("name"))
        if name
    ]
    # The longest first: one chat's name may begin with another's.
    for name, group in sorted(called, key=lambda pair: -len(pair[0])):
        rest = bare[len(name) :]
        if bare[: len(name)].casefold() == name.casefold() and not re.match(r"\w", rest):
            words = re.sub(r"\A[\"'”`]?[\s,:]*(?:that\s+)?", "", rest, flags=re.IGNORECASE)
            return group, words.strip()
    return None, ""


def _list_groups(visit: Visit, _: re.Match[str]) -> Answer:
    groups = visit.toolset.groups()
    if not groups:
        return say("The host has not told me of any chats.")
    return say("\n".join(["The chats that I know:", "", *map(_group_line, groups)]))


def _group_line(group: Mapping[str, object]) -> str:
    place = f"folder `{group['folder']}`" if group.get("folder") else "not registered"
    return f"- **{_name(group)}** `{group.get('jid')}` ({place})"


def _name(group: Mapping[str, object]) -> str:
    return str(group.get("name") or group.get("jid"))


def _register(visit: Visit, match: re.Match[str]) -> Answer:
    said, folder = match["chat"].strip(" `'\"“”"), match["folder"]
    group, rest = _addressed(visit.toolset.groups(), said)
    known = group if group is not None and not rest else {"jid": said}
    asked = {
        "jid": known.get("jid"),
        "name": (match["name"] or "").strip(" `'\"“”.") or known.get("name") or folder,
        "folder": folder,
        "trigger": match["trigger"] or f"@{visit.name}",
        "requires_trigger": match["without"] is None,
    }
    visit.toolset.call("register_group", asked)
    wakes = "every message there wakes" if match["without"] else f"`{asked['trigger']}` there wakes"
    return say(f"**{asked['name']}** is a group now, in the folder `{folder}`; {wakes} its agent.")


def _refresh(visit: Visit, match: re.Match[str]) -> Answer:
    visit.toolset.call("refresh_groups", {})
    return _list_groups(visit, match)


_LIST = rf"(?:(?:list|show)\s+(?:me\s+)?)?(?:(?:my|the|all)\s+)?(?:known\s+)?(?:groups|chats){END}"
_REGISTER = (
    r"register\s+(?P<chat>.+?)\s+(?:as|in|into)\s+(?:(?:the\s+)?folder\s+)?`?(?P<folder>[^\s`]+)`?"
    r"(?:\s+(?:named|called)\s+(?P<name>.+?))?"
    r"(?:\s+(?:with|on)\s+(?:the\s+)?trigger\s+(?P<trigger>\S+)"
    r"|\s+(?P<without>without)(?:\s+a)?\s+trigger)?"
)
CHATS: tuple[tuple[str, Skill], ...] = (
    (_LIST, _list_groups),
    (rf"refresh(?:\s+(?:the\s+)?(?:groups|chats))?{END}", _refresh),
    (_REGISTER, _register),
    (r"tell\s+(?P<what>.+)", _tell),
)
