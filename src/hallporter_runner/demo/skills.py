"""What the demo agent understands, and what it answers."""

from __future__ import annotations

import re
import time

from hallporter_runner.agents import AgentError
from hallporter_runner.demo.chats import CHATS
from hallporter_runner.demo.reminders import REMINDERS, is_reminder, remind
from hallporter_runner.demo.showcase import LONG_ANSWER
from hallporter_runner.demo.surroundings import describe
from hallporter_runner.demo.visit import END, Answer, Skill, Visit, say
from hallporter_runner.tools import ToolError

_MOST_COUNTED = 100
_MOST_PARTS = 5
_LONGEST_WORK = 600  # seconds
_GIST = 200  # characters
_CRASH = 3  # exit code

_HELP = """\
Try one of these:

- `hello`: I greet you
- `echo good evening`: I say it back
- `count to 5`, `count words in a short line`
- `what time is it?`: in this chat's time zone
- `where are you?`: what I see of my sandbox
- `show formatting`: a long answer with headings, a table, code
- `work slowly for 20 seconds`, `count slowly to 10`: tell me more meanwhile, or `/stop` me
- `answer in 2 parts`: two messages in a row
- `say nothing`: I stay silent
- `remind me in 2 minutes to stand up`, `remind me tomorrow at 9 to call Bob`
- `every weekday at 9:30 what time is it?`, `every 5 minutes stretch`
- `tasks`; with an id or words of one: `pause …`, `resume …`, `run …`, `cancel …`
- in the main chat: `groups`, `tell family dinner is ready`, `register web:family as family`
- `how many messages?`: what I remember of this session
- `fail`, `fail once`, `crash`: see how trouble looks
"""


def answer_to(visit: Visit) -> Answer:
    """The answer to a visit's request; raises AgentError or SystemExit when asked for trouble."""
    text = visit.talk.request.text.strip()
    if is_reminder(visit):
        return remind(visit)
    for pattern, skill in (*_SKILLS, *REMINDERS, *CHATS):
        if match := re.fullmatch(pattern, text, re.IGNORECASE | re.DOTALL):
            try:
                answer = skill(visit, match)
            except ToolError as refusal:
                return say(refusal.words)
            if answer is not None:
                return answer
    return remind(visit) if visit.is_task else _no_idea(visit, text)


def _greet(visit: Visit, _: re.Match[str]) -> Answer:
    sender = visit.talk.request.sender
    return say(
        f"Hello{', ' + sender if sender else ''}! I am {visit.name}, the demo agent: no model, "
        "no key, but a real sandbox around me. Say `help` to see what you can try."
    )


def _help(_visit: Visit, _: re.Match[str]) -> Answer:
    return say(_HELP)


def _echo(_visit: Visit, match: re.Match[str]) -> Answer:
    return say(match["what"])


def _count(_visit: Visit, match: re.Match[str]) -> Answer:
    return say(_numbers(int(match["n"])))


def _count_slowly(_visit: Visit, match: re.Match[str]) -> Answer:
    number = int(match["n"])
    return say(_numbers(number), seconds=min(number, _MOST_COUNTED))


def _numbers(last: int) -> str:
    numbers = ", ".join(str(number) for number in range(1, min(last, _MOST_COUNTED) + 1))
    if last > _MOST_COUNTED:
        return f"{numbers} … and so on to {last}; I stop at {_MOST_COUNTED}."
    return f"{numbers}." if numbers else "There is nothing to count."


def _count_words(_visit: Visit, match: re.Match[str]) -> Answer:
    count = len(match["what"].split())
    return say("That is one word." if count == 1 else f"Those are {count} words.")


def _tell_time(visit: Visit, _: re.Match[str]) -> Answer:
    now, zone = visit.talk.now, visit.talk.timezone
    if now is None:
        return say(
            f"The host did not tell me the time. My own clock says {time.strftime('%H:%M')}."
        )
    return say(f"It is {now:%H:%M} on {now:%A}, {now.day} {now:%B %Y} ({zone}).")


def _look_around(visit: Visit, _: re.Match[str]) -> Answer:
    return say(describe(visit.workplace))


def _show_formatting(_visit: Visit, _: re.Match[str]) -> Answer:
    return say(LONG_ANSWER)


def _work_slowly(_visit: Visit, match: re.Match[str]) -> Answer:
    seconds = min(int(match["n"] or "10"), _LONGEST_WORK)
    length = "one second" if seconds == 1 else f"{seconds} seconds"
    return say(f"Done: I worked for {length}.", seconds=seconds)


def _answer_in_parts(_visit: Visit, match: re.Match[str]) -> Answer:
    count = max(1, min(int(match["n"]), _MOST_PARTS))
    return say(*(f"Part {number} of {count}." for number in range(1, count + 1)))


def _say_nothing(_visit: Visit, _: re.Match[str]) -> Answer:
    return say()


def _remember(visit: Visit, _: re.Match[str]) -> Answer:
    messages = "one message" if visit.seen == 1 else f"{visit.seen} messages"
    return say(f"I have seen {messages} in this session. `/new` begins another.")


def _fail(_visit: Visit, _: re.Match[str]) -> Answer:
    raise AgentError("The demo agent failed because it was asked to.")


def _fail_once(visit: Visit, _: re.Match[str]) -> Answer:
    if visit.talk.attempt > 1:
        return say(f"This is attempt {visit.talk.attempt}, and it works.")
    raise AgentError("The demo agent failed its first attempt because it was asked to.")


def _crash(_visit: Visit, _: re.Match[str]) -> Answer:
    raise SystemExit(_CRASH)


def _no_idea(visit: Visit, text: str) -> Answer:
    gist = text if len(text) <= _GIST else f"{text[:_GIST]}…"
    quoted = "\n".join(f"> {line}" for line in gist.splitlines()) or "> (nothing)"
    return say(
        f"I read your message:\n\n{quoted}\n\nI am the demo agent and have no model to think about "
        "it with. Try `where are you?`, `remind me in 30 seconds to stand up` or `show formatting`;"
        f" `help` lists the rest. (Message {visit.seen} of this session.)"
    )


# The first that fits the whole request wins.
_SKILLS: tuple[tuple[str, Skill], ...] = (
    (
        rf"(hello|hi|hey|good (morning|day|evening)|hola|bonjour|مرحبا|你好)(,?\s+\w+)?{END}",
        _greet,
    ),
    (rf"(help|what can you do|what can i try){END}|\?*", _help),
    (r"echo\s+(?P<what>.+)", _echo),
    (rf"count (up )?to (?P<n>\d{{1,9}}){END}", _count),
    (rf"count slowly to (?P<n>\d{{1,9}}){END}", _count_slowly),
    (r"count (the )?words in[:\s]+(?P<what>.+)", _count_words),
    (rf"((what )?time( is it)?|what is the time){END}", _tell_time),
    (rf"(where are you|sandbox){END}", _look_around),
    (rf"(long|show (me )?(the )?formatting){END}", _show_formatting),
    (rf"work slowly( for (?P<n>\d{{1,9}}) ?s(ec(ond)?s?)?)?{END}", _work_slowly),
    (rf"answer in (?P<n>\d{{1,9}}) parts?{END}", _answer_in_parts),
    (rf"(say nothing|be quiet){END}", _say_nothing),
    (rf"how many messages( have you seen)?{END}", _remember),
    (rf"fail{END}", _fail),
    (rf"fail once{END}", _fail_once),
    (rf"crash{END}", _crash),
)
