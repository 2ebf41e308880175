"""Reminders and other tasks, asked of the demo agent in plain words and kept by the host."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from hallporter_runner.demo.moments import describe_moment, describe_span, now_of
from hallporter_runner.demo.timetable import plan_at_end, plan_at_start
from hallporter_runner.demo.visit import END, Answer, Skill, Visit, say
from hallporter_runner.tools import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hallporter_runner.demo.timetable import Plan

_REMINDER = "Reminder: "
_COMPLETED = "completed"  # a task's status
_GIST = 100  # characters of a task's prompt
_PREFIXES = ("task-", "task_")  # of ids
_BEGINNING = 2  # characters of an id at least
_LINK = re.compile(r"[\s,:;–-]*(?:(?:to|that|about|of)\s+)?", re.IGNORECASE)
_ASK = (
    r"(?:(?:please|can you|could you|would you)\s+)*"
    r"(?:remind\s+(?:me|us|everyone|everybody)|set\s+(?:me\s+|us\s+)?a\s+reminder|reminder)\b"
)
_WHEN = (
    "When? Say it like `remind me in 2 minutes to stand up`, `remind me at 18:30 to call Bob` or"
    " `every weekday at 9:30 what time is it?`"
)


def is_reminder(visit: Visit) -> bool:
    """Whether a task has nothing to do but to say its words."""
    return visit.is_task and visit.talk.request.text.startswith(_REMINDER)


def remind(visit: Visit) -> Answer:
    """What such a task says, and one whose prompt the agent does not know."""
    text = visit.talk.heard[-1].text if visit.talk.heard else ""
    words = re.sub(rf"\A{_ASK}", "", text, flags=re.IGNORECASE)
    return say(f"{_REMINDER}{_LINK.sub('', words, count=1)}")


def _remind(visit: Visit, match: re.Match[str]) -> Answer:
    now = now_of(visit.talk)
    said = match["what"].strip()
    found = plan_at_start(said.lstrip(" ,:"), now) or plan_at_end(said, now)
    if found is None:
        return remind(visit) if visit.is_task else say(_WHEN)
    plan, rest = found
    what = _LINK.sub("", rest, count=1).strip(" ,")
    if not what:
        return say(f"What of? Say it like `remind me {plan.words} to stand up`.")
    return _schedule(visit, plan, f"{_REMINDER}{what}", f"I will remind you {plan.words}: {what}")


def _repeat(visit: Visit, match: re.Match[str]) -> Answer | None:
    found = plan_at_start(match[0], now_of(visit.talk))
    if found is None or found[0].type == "once":
        return None
    plan, rest = found
    what = _LINK.sub("", rest, count=1).strip()
    if not what:
        return say(f"Do what? Say it like `{plan.words} what time is it?`")
    if reminder := re.match(rf"{_ASK}(?P<what>.+)", what, re.IGNORECASE | re.DOTALL):
        what = _REMINDER + _LINK.sub("", reminder["what"], count=1)
    return _schedule(visit, plan, what, f"I will do this {plan.words}: {what}")


def _schedule(visit: Visit, plan: Plan, prompt: str, words: str) -> Answer:
    asked = {
        "prompt": prompt,
        "schedule_type": plan.type,
        "schedule_value": plan.value,
        "timezone": plan.timezone or visit.talk.timezone or None,
    }
    told = visit.toolset.call("schedule_task", asked).data
    id = told["task_id"]
    due = _moment(told.get("next_run")) or plan.at
    next_time = f"Next: {describe_moment(due, visit.talk)}. " if due else ""
    return say(
        f"{words}\n\n{next_time}It is the task `{id}`: `cancel {id}` takes it back, `tasks`"
        " lists all."
    )


def _list_tasks(visit: Visit, _: re.Match[str]) -> Answer:
    tasks = visit.toolset.tasks()
    ahead = _ahead(tasks)
    done = f"({len(tasks) - len(ahead)} done.)" if len(ahead) < len(tasks) else ""
    if not ahead:
        return say(f"There are no tasks. {_WHEN.removeprefix('When? ')} {done}".rstrip())
    return say(
        "\n".join(
            [
                "There is one task:" if len(ahead) == 1 else f"There are {len(ahead)} tasks:",
                "",
                *(_task_line(visit, task) for task in ahead),
                "",
                "Say `pause`, `resume`, `run` or `cancel` with an id, or with words of its text."
                f" {done}".rstrip(),
            ]
        )
    )


def _task_line(visit: Visit, task: Mapping[str, object]) -> str:
    folder = task.get("group_folder")
    whose = "" if folder in (visit.folder, None) else f", of the group `{folder}`"
    due = _moment(task.get("next_run"))
    when = f", next {describe_moment(due, visit.talk)}" if due else ""
    status = "" if task.get("status") == "active" else f", {task.get('status')}"
    return f"- `{task.get('id')}` {_gist(task)} ({_rhythm(task)}{status}{when}{whose})"


def _gist(task: Mapping[str, object]) -> str:
    words = " ".join(str(task.get("prompt", "")).split())
    return words if len(words) <= _GIST else f"{words[:_GIST]}…"


def _rhythm(task: Mapping[str, object]) -> str:
    value = str(task.get("schedule_value"))
    match task.get("schedule_type"):
        case "once":
            return "once"
        case "interval" if value.isdecimal():
            return f"every {describe_span(timedelta(milliseconds=int(value)))}"
    return f"cron `{value}`"


_VERBS = {
    "pause": "pause",
    "hold": "pause",
    "resume": "resume",
    "unpause": "resume",
    "continue": "resume",
    "cancel": "cancel",
    "delete": "cancel",
    "remove": "cancel",
    "run": "run",
}
_ALL = (
    r"(?:(?:all|everything)(?:\s+(?:my|the|of them))?(?:\s+(?:tasks|reminders))?|tasks|reminders)"
)
_DONE = {
    "pause": "Paused",
    "resume": "Resumed",
    "cancel": "Cancelled",
    "run": "It runs now",
}


def _control(visit: Visit, match: re.Match[str]) -> Answer:
    verb = _VERBS[match["verb"].lower()]
    which = match["which"].strip(" `'\"“”.!")
    if re.fullmatch(_ALL, which, re.IGNORECASE):
        # In the main chat too: the other groups' are theirs.
        tasks = [task for task in visit.toolset.tasks() if task.get("group_folder") == visit.folder]
        if not tasks:
            return say("This chat has no tasks.")
        if verb != "cancel" and not (tasks := _ahead(tasks)):
            return say("All tasks of this chat are done.")
    else:
        tasks = _named(visit.toolset.tasks(), which)
        if len(tasks) > 1:
            lines = "\n".join(_task_line(visit, task) for task in tasks)
            return say(f"Which of these? Say more words, or the id.\n\n{lines}")
        if not tasks and not which.startswith(_PREFIXES):
            return say(f"I see no task that fits “{which}”. `tasks` lists them.")
    return say("\n\n".join(_carry_out(visit, verb, task) for task in tasks or [{"id": which}]))


def _carry_out(visit: Visit, verb: str, task: Mapping[str, object]) -> str:
    # One that is refused does not keep the others from their answer.
    try:
        visit.toolset.call(f"{verb}_task", {"task_id": task["id"]})
    except ToolError as refusal:
        return refusal.words
    return f"{_DONE[verb]}: `{task['id']}` {_gist(task)}".rstrip()


def _named(tasks: Sequence[dict[str, object]], which: str) -> list[dict[str, object]]:
    """Those with the id; else those whose id begins so; else those with all the words. Of several,
    what is done counts only when nothing else fits."""
    ids = [task for task in tasks if task.get("id") == which]
    begun = [task for task in tasks if _begins(str(task.get("id")), which)]
    words = [rf"\b{re.escape(word)}" for word in which.split()]
    worded = [
        task
        for task in tasks
        if words and all(re.search(word, str(task.get("prompt")), re.IGNORECASE) for word in words)
    ]
    return ids or _ahead(begun) or begun or _ahead(worded) or worded


def _begins(id: str, which: str) -> bool:
    """Agents make ids like `task-3f…`, the host `task_01…`; the first word may be left out."""
    if len(which) < _BEGINNING:
        return False
    return id.startswith((which, *(f"{prefix}{which}" for prefix in _PREFIXES)))


def _ahead(tasks: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    return [task for task in tasks if task.get("status") != _COMPLETED]


def _moment(value: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return at if at is None or at.tzinfo else None


_TASKS = r"(?:scheduled\s+)?(?:tasks?|reminders?)"
_LIST = (
    rf"(?:(?:list|show)\s+(?:me\s+)?)?(?:all\s+)?(?:(?:my|the|our)\s+)?{_TASKS}{END}"
    rf"|(?:what|which)\s+{_TASKS}\s+(?:are there|do (?:i|we) have){END}"
)
_CONTROL = (
    rf"(?P<verb>{'|'.join(_VERBS)})\s+(?:(?:the|my)\s+)?"
    r"(?:(?:task|reminder)\s+(?:(?:to|that|about|of|for)\s+)?)?"
    r"(?P<which>.+?)(?:\s+(?:task|reminder))?(?:\s+now)?"
)
REMINDERS: tuple[tuple[str, Skill], ...] = (
    (rf"{_ASK}(?P<what>.*)", _remind),
    (_LIST, _list_tasks),
    (_CONTROL, _control),
    (r"(?:every|each|everyday|daily|hourly|monthly|at)\b.+", _repeat),
)
