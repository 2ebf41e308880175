from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hallporter_runner.demo.conversation import listen
from hallporter_runner.demo.moments import describe_moment
from hallporter_runner.demo.skills import answer_to
from hallporter_runner.demo.visit import Visit
from hallporter_runner.mail import Mail
from hallporter_runner.toolset import Toolset
from hallporter_runner.workplace import Workplace
from hallporter_wire.prompt import Context, Utterance, format_prompt, format_task
from tests.runner.conftest import Start
from tests.runner.host import Host

NOW = datetime.fromisoformat("2026-02-19T12:00:00+02:00")  # a Thursday
ZONE = "Africa/Cairo"
CONTEXT = Context(now=NOW, timezone=ZONE, attempt=1, omitted=0)
TASKS: list[dict[str, Any]] = [
    {
        "id": "task-aa11",
        "prompt": "Reminder: call Bob",
        "schedule_type": "once",
        "schedule_value": "2026-02-20T09:00:00",
        "status": "active",
        "next_run": "2026-02-20T07:00:00.000Z",
        "group_folder": "main",
    },
    {
        "id": "task-bb22",
        "prompt": "what time is it?",
        "schedule_type": "interval",
        "schedule_value": "300000",
        "status": "paused",
        "next_run": None,
        "group_folder": "main",
    },
    {
        "id": "task-bb33",
        "prompt": "Reminder: call Alice",
        "schedule_type": "cron",
        "schedule_value": "0 9 * * *",
        "status": "active",
        "next_run": "2026-02-23T07:00:30.000Z",
        "group_folder": "family",
    },
]
GROUPS = {
    "groups": [
        {"jid": "web:main", "name": "Main", "folder": "main"},
        {"jid": "web:family", "name": "Family", "folder": "family"},
        {"jid": "web:f2", "name": "Family Trips", "folder": "trips"},
        {"jid": "web:new", "name": "New people", "folder": None},
    ],
    "lastSync": "2026-02-19T10:00:00.000Z",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    host: Host
    workplace: Workplace

    def ask(self, text: str, *, is_main: bool = True, is_task: bool = False) -> str:
        said = Utterance(id="m", at=NOW, sender="Mina", text=text)
        prompt = format_task(text, CONTEXT) if is_task else format_prompt([said], CONTEXT)
        answer = answer_to(
            Visit(
                name="Andy",
                talk=listen((prompt,)),
                seen=1,
                workplace=self.workplace,
                toolset=Toolset(Mail(self.workplace.ipc), is_main=is_main),
                folder="main",
                is_main=is_main,
                is_task=is_task,
            )
        )
        (reply,) = answer.parts
        return reply

    def asked_of_host(self, text: str, **circumstances: bool) -> Mapping[str, Any]:
        """The one request that a text leads to, without the id that was made for it."""
        self.ask(text, **circumstances)
        (request,) = self.host.requests
        id = request.get("taskId", "")
        return request if id in [task["id"] for task in TASKS] else {**request, "taskId": ""}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Host(tmp_path) as host:
        host.write("current_tasks.json", TASKS)
        host.write("available_groups.json", GROUPS)
        yield Desk(host=host, workplace=Workplace(root=tmp_path))


@pytest.mark.parametrize(
    ("text", "prompt", "schedule", "zone"),
    [
        (
            "remind me in 2 minutes to call Bob",
            "Reminder: call Bob",
            ("once", "2026-02-19T10:02:00"),
            "UTC",
        ),
        (
            "Remind me in 30 seconds: tea!",
            "Reminder: tea!",
            ("once", "2026-02-19T10:00:30"),
            "UTC",
        ),
        (
            "please remind me at 18:30 that dinner is ready",
            "Reminder: dinner is ready",
            ("once", "2026-02-19T18:30:00"),
            ZONE,
        ),
        (
            "@Andy remind me tomorrow at 9 to pay the rent",
            "Reminder: pay the rent",
            ("once", "2026-02-20T09:00:00"),
            ZONE,
        ),
        (
            "remind us to pay the rent on monday at 8",
            "Reminder: pay the rent",
            ("once", "2026-02-23T08:00:00"),
            ZONE,
        ),
        (
            "set a reminder about the bins at 7pm",
            "Reminder: the bins",
            ("once", "2026-02-19T19:00:00"),
            ZONE,
        ),
        (
            "could you remind me every day at 9 to stretch",
            "Reminder: stretch",
            ("cron", "0 9 * * *"),
            ZONE,
        ),
        ("every day at 9 what time is it?", "what time is it?", ("cron", "0 9 * * *"), ZONE),
        ("every weekday at 9:30, stand up", "stand up", ("cron", "30 9 * * 1-5"), ZONE),
        (
            "every monday at 10 remind me to water the plants",
            "Reminder: water the plants",
            ("cron", "0 10 * * 1"),
            ZONE,
        ),
        ("every 5 minutes count to 3", "count to 3", ("interval", "300000"), ZONE),
        ("every hour: stretch", "stretch", ("interval", "3600000"), ZONE),
        ("at 9 every day tell family hello", "tell family hello", ("cron", "0 9 * * *"), ZONE),
    ],
)
def test_plain_words_become_a_task(
    desk: Desk, text: str, prompt: str, schedule: tuple[str, str], zone: str
) -> None:
    schedule_type, schedule_value = schedule
    assert desk.asked_of_host(text) == {
        "type": "schedule_task",
        "taskId": "",
        "prompt": prompt,
        "schedule_type": schedule_type,
        "schedule_value": schedule_value,
        "timezone": zone,
    }


def test_the_answer_names_the_id_and_the_next_time_in_the_chats_zone(desk: Desk) -> None:
    # The host's word counts; and in May the clocks of Cairo are an hour further on.
    desk.host.answer = lambda _: {"ok": True, "next_run": "2026-05-01T06:00:00+00:00"}
    reply = desk.ask("remind me every day at 9 to stretch")
    id = desk.host.requests[0]["taskId"]
    assert reply.startswith("I will remind you every day at 9: stretch\n\n")
    assert f"Next: Friday, 1 May 2026 at 09:00 ({ZONE}). It is the task `{id}`" in reply


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("remind me in 90 seconds to sit", "today at 12:01:30"),
        ("remind me at 18:30 to eat", "today at 18:30"),
        ("remind me tomorrow to rest", "tomorrow at 09:00"),
    ],
)
def test_a_host_that_tells_no_time_is_helped_out(desk: Desk, text: str, when: str) -> None:
    assert f"Next: {when} ({ZONE})." in desk.ask(text)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("remind me to call Bob", "When? Say it like"),
        ("remind me", "When? Say it like"),
        ("remind me in 2 minutes", "What of? Say it like `remind me in 2 minutes to stand up`."),
        ("every day at 9", "Do what? Say it like `every day at 9 what time is it?`"),
        ("remind me at 25:00 to sleep", "25:00 is no time of day"),
        ("every 0 minutes count to 3", "'0' is no interval"),
    ],
)
def test_what_is_missing_or_cannot_be_is_asked_for(desk: Desk, text: str, question: str) -> None:
    assert desk.ask(text).startswith(question)
    assert desk.host.requests == []


@pytest.mark.parametrize("text", ["every dog has its day", "at 9 I was asleep", "tell me a joke"])
def test_other_sentences_are_left_alone(desk: Desk, text: str) -> None:
    assert desk.ask(text).startswith("I read your message:")


@pytest.mark.parametrize(
    ("prompt", "reply"),
    [
        ("Reminder: call Bob", "Reminder: call Bob"),
        ("Reminder: call Bob at 18:30", "Reminder: call Bob at 18:30"),
        ("Reminder: help", "Reminder: help"),
        ("remind me to stretch", "Reminder: stretch"),
        ("stand up", "Reminder: stand up"),
        ("@Mina stand up", "Reminder: @Mina stand up"),
        ("count to 3", "1, 2, 3."),
        ("what time is it?", f"It is 12:00 on Thursday, 19 February 2026 ({ZONE})."),
    ],
)
def test_a_task_that_is_due_says_its_words_or_does_what_they_ask(
    desk: Desk, prompt: str, reply: str
) -> None:
    assert desk.ask(prompt, is_task=True) == reply
    assert desk.host.requests == []


@pytest.mark.parametrize(
    "text", ["tasks", "list my tasks", "Show me my reminders!", "what tasks are there?"]
)
def test_it_lists_the_tasks(desk: Desk, text: str) -> None:
    whose = "of the group `family`"
    monday = f"Monday, 23 February 2026 at 09:00:30 ({ZONE})"
    assert desk.ask(text).splitlines()[:5] == [
        "There are 3 tasks:",
        "",
        f"- `task-aa11` Reminder: call Bob (once, next tomorrow at 09:00 ({ZONE}))",
        "- `task-bb22` what time is it? (every 5 minutes, paused)",
        f"- `task-bb33` Reminder: call Alice (cron `0 9 * * *`, next {monday}, {whose})",
    ]


def test_what_is_done_is_only_counted(desk: Desk) -> None:
    done = {**TASKS[0], "id": "task-zz99", "status": "completed", "next_run": None}
    desk.host.write("current_tasks.json", [done, TASKS[0]])
    lines = desk.ask("tasks").splitlines()
    assert lines[0] == "There is one task:"
    assert lines[-1].endswith("its text. (1 done.)")
    assert desk.ask("cancel call bob") == "Cancelled: `task-aa11` Reminder: call Bob"
    desk.host.write("current_tasks.json", [done])
    assert desk.ask("tasks").endswith("what time is it?` (1 done.)")
    assert desk.ask("cancel call bob") == "Cancelled: `task-zz99` Reminder: call Bob"


def test_without_tasks_it_says_how_to_make_one(desk: Desk) -> None:
    desk.host.write("current_tasks.json", [])
    assert desk.ask("tasks").startswith("There are no tasks. Say it like `remind me in 2 minutes")
    assert desk.ask("cancel all") == "This chat has no tasks."


@pytest.mark.parametrize(
    ("text", "type_", "id"),
    [
        ("pause task-aa11", "pause_task", "task-aa11"),
        ("resume `task-bb22`.", "resume_task", "task-bb22"),
        ("cancel aa11", "cancel_task", "task-aa11"),
        ("cancel task aa", "cancel_task", "task-aa11"),
        ("delete the bob reminder", "cancel_task", "task-aa11"),
        ("cancel the reminder to call Bob", "cancel_task", "task-aa11"),
        ("Cancel call ALICE", "cancel_task", "task-bb33"),
        ("run what time now", "run_task", "task-bb22"),
    ],
)
def test_a_task_is_named_by_id_or_by_words(desk: Desk, text: str, type_: str, id: str) -> None:
    assert desk.asked_of_host(text) == {"type": type_, "taskId": id}


MADE_BY_THE_HOST = [{**TASKS[0], "id": f"task_01k9{end}"} for end in ("zq4", "zv7", "0a1")]


@pytest.mark.parametrize(
    "which", ["task_01k9zq4", "task_01k9zq", "task 01k9zq", "`01k9zq4`", "01k9zq"]
)
def test_the_beginning_of_an_id_is_enough_whoever_made_it(desk: Desk, which: str) -> None:
    desk.host.write("current_tasks.json", MADE_BY_THE_HOST)
    assert desk.ask(f"cancel {which}").startswith("Cancelled: `task_01k9zq4`")


def test_ids_that_begin_alike_are_named(desk: Desk) -> None:
    *ahead, done = MADE_BY_THE_HOST
    desk.host.write("current_tasks.json", [*ahead, {**done, "status": "completed"}])
    reply = desk.ask("cancel task_01k9")
    assert reply.startswith("Which of these?")
    assert all(f"`{task['id']}`" in reply for task in ahead)
    assert f"`{done['id']}`" not in reply
    assert desk.host.requests == []


def test_the_answer_says_which_task_it_was(desk: Desk) -> None:
    assert desk.ask("pause bob") == "Paused: `task-aa11` Reminder: call Bob"


def test_words_that_fit_several_tasks_are_asked_about(desk: Desk) -> None:
    reply = desk.ask("cancel call")
    assert reply.startswith("Which of these?")
    assert "task-aa11" in reply
    assert "task-bb33" in reply
    assert desk.host.requests == []


@pytest.mark.parametrize(
    ("text", "words"), [("cancel my flight", "flight"), ("cancel ob", "ob"), ("cancel ...", "")]
)
def test_words_that_fit_no_task_are_told_back(desk: Desk, text: str, words: str) -> None:
    assert desk.ask(text) == f"I see no task that fits “{words}”. `tasks` lists them."
    assert desk.host.requests == []


@pytest.mark.parametrize("text", ["cancel all", "cancel all my tasks", "delete my reminders"])
def test_all_means_this_chats_own(desk: Desk, text: str) -> None:
    desk.ask(text)
    assert [request["taskId"] for request in desk.host.requests] == ["task-aa11", "task-bb22"]


@pytest.mark.parametrize(
    ("verb", "count"), [("pause", 2), ("resume", 2), ("run", 2), ("cancel", 3)]
)
def test_all_leaves_out_what_is_done_unless_it_is_cancelled(
    desk: Desk, verb: str, count: int
) -> None:
    done = {**TASKS[0], "id": "task-zz99", "status": "completed", "next_run": None}
    desk.host.write("current_tasks.json", [*TASKS, done])
    desk.ask(f"{verb} all")
    assert len(desk.host.requests) == count
    desk.host.write("current_tasks.json", [done])
    reply = desk.ask(f"{verb} all")
    assert reply == "All tasks of this chat are done." or verb == "cancel"


def test_one_refusal_among_several_is_told_beside_the_rest(desk: Desk) -> None:
    def answer(request: Mapping[str, Any]) -> Mapping[str, object]:
        is_ok = request["taskId"] == "task-aa11"
        return {"ok": True} if is_ok else {"ok": False, "error": "it is paused already"}

    desk.host.answer = answer
    assert desk.ask("pause all") == "Paused: `task-aa11` Reminder: call Bob\n\nit is paused already"


def test_a_host_that_writes_strange_things_is_borne(desk: Desk) -> None:
    strange = {
        "prompt": "call\nBob " * 100,
        "schedule_type": "interval",
        "schedule_value": "1500",
        "next_run": "soon",
    }
    desk.host.write("current_tasks.json", [{**TASKS[0], **strange}, "what?"])
    assert "call Bob call Bob c… (every 1.5 seconds)" in desk.ask("tasks")


def test_a_zone_that_the_box_does_not_know_is_told_by_the_hosts_offset() -> None:
    talk = listen((f'<context now="{NOW.isoformat()}" timezone="Mars/Olympus"/>\ntasks',))
    moment = datetime.fromisoformat("2026-02-19T16:30:00Z")
    assert describe_moment(moment, talk) == "today at 18:30 (Mars/Olympus)"


def test_a_refusal_of_the_host_is_shown_as_it_is(desk: Desk) -> None:
    desk.host.answer = lambda _: {"ok": False, "error": "this group has no task 'task-zz'"}
    assert desk.ask("cancel task-zz") == "this group has no task 'task-zz'"


@pytest.mark.parametrize(
    ("text", "target", "words"),
    [
        ("tell family dinner is ready", "web:family", "dinner is ready"),
        ("tell Family Trips that we leave at 9", "web:f2", "we leave at 9"),
        ('tell "new people": welcome', "web:new", "welcome"),
        ("tell web:family hello", "web:family", "hello"),
    ],
)
def test_main_tells_another_chat(desk: Desk, text: str, target: str, words: str) -> None:
    sent = {"type": "message", "targetJid": target, "text": words, "taskId": ""}
    assert desk.asked_of_host(text) == sent


@pytest.mark.parametrize(
    ("text", "is_main", "reply"),
    [
        ("tell familiars hello", True, "I know no chat to tell that. `groups` lists"),
        ("tell nobody hello", False, "I know no chat to tell that. This is not the main chat"),
        ("tell family hello", False, "only the main group may do that"),
        ("tell family", True, "Tell Family what?"),
        ("register web:a as a", False, "only the main group may do that"),
        ("refresh groups", False, "only the main group may do that"),
    ],
)
def test_who_cannot_be_told_is_said(desk: Desk, text: str, is_main: bool, reply: str) -> None:
    assert desk.ask(text, is_main=is_main).startswith(reply)
    assert desk.host.requests == []


@pytest.mark.parametrize("text", ["groups", "list the chats", "refresh groups"])
def test_it_lists_the_chats(desk: Desk, text: str) -> None:
    lines = desk.ask(text).splitlines()
    assert lines[2] == "- **Main** `web:main` (folder `main`)"
    assert lines[-1] == "- **New people** `web:new` (not registered)"


def test_without_a_list_of_chats_it_says_so(desk: Desk) -> None:
    desk.host.write("available_groups.json", {})
    assert desk.ask("groups") == "The host has not told me of any chats."


@pytest.mark.parametrize(
    ("text", "group"),
    [
        ("register web:new as people", {"name": "New people", "trigger": "@Andy"}),
        ("register New people as people", {"name": "New people", "trigger": "@Andy"}),
        (
            "register web:new as people named The People with trigger @Bo",
            {"name": "The People", "trigger": "@Bo"},
        ),
        (
            "register web:new in the folder people without a trigger",
            {"name": "New people", "trigger": "@Andy", "requiresTrigger": False},
        ),
    ],
)
def test_main_registers_a_chat(desk: Desk, text: str, group: dict[str, Any]) -> None:
    assert desk.asked_of_host(text) == {
        "type": "register_group",
        "jid": "web:new",
        "folder": "people",
        "requiresTrigger": True,
        "taskId": "",
        **group,
    }


def test_a_chat_nobody_has_seen_is_registered_under_its_folders_name(desk: Desk) -> None:
    reply = desk.ask("register web:later as later")
    assert reply.startswith("**later** is a group now, in the folder `later`; `@Andy` there wakes")


def test_help_names_all_of_it(desk: Desk) -> None:
    reply = desk.ask("help")
    for word in ("remind me", "every weekday", "`tasks`", "cancel", "tell family", "register"):
        assert word in reply


def test_the_agent_in_its_process_does_the_same(start: Start, tmp_path: Path) -> None:
    with Host(tmp_path) as host:
        result = start("remind me in 2 minutes to call Bob").block().result or ""
    assert host.requests[0]["prompt"] == "Reminder: call Bob"
    assert f"`{host.requests[0]['taskId']}`" in result
