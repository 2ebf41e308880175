"""Who may ask for what, as a table and as properties."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hallporter.domain.authority import SETTABLE, About, may
from hallporter.domain.command import (
    CancelTask,
    Command,
    PauseTask,
    RefreshGroups,
    RegisterGroup,
    ResumeTask,
    RunTask,
    ScheduleTask,
    SendMessage,
    UpdateTask,
)
from hallporter.domain.group import Group
from hallporter.domain.ids import ChatId, Folder, TaskId


def group(name: str, *, is_main: bool = False) -> Group:
    return Group(
        chat=ChatId(f"web:{name}"),
        name=name,
        folder=Folder(name),
        trigger="@Andy",
        requires_trigger=True,
        is_main=is_main,
        added_at=datetime(2026, 2, 19, tzinfo=UTC),
    )


MAIN, FAMILY, WORK = group("main", is_main=True), group("family"), group("work")

chats = st.none() | st.sampled_from([MAIN.chat, FAMILY.chat, WORK.chat, ChatId("web:nobody")])
folders = st.none() | st.sampled_from(["main", "family", "FAMILY", "work", "nowhere"])
tasks = st.just(TaskId("task-1"))
settings = st.none() | st.dictionaries(
    st.sampled_from([*sorted(SETTABLE), "sandbox", "command", "is_main", "mounts"]), st.just(1)
)
commands: st.SearchStrategy[Command] = st.one_of(
    st.builds(SendMessage, text=st.just("x"), target=chats),
    st.builds(
        ScheduleTask,
        prompt=st.just("x"),
        schedule_type=st.just("cron"),
        schedule_value=st.just("0 9 * * *"),
        target=chats,
        folder=folders,
    ),
    *(
        st.builds(kind, task=tasks, folder=folders)
        for kind in (UpdateTask, PauseTask, ResumeTask, CancelTask, RunTask)
    ),
    st.builds(
        RegisterGroup,
        chat=st.just("web:new"),
        name=st.just("New"),
        folder=st.just("new"),
        agent=settings,
    ),
    st.builds(RefreshGroups, folder=folders),
)
owners = st.none() | st.sampled_from([MAIN.folder, FAMILY.folder, WORK.folder])


def about(asker: Group, command: Command, owner: Folder | None) -> About:
    """What the store would say."""
    target = getattr(command, "target", None)
    named = getattr(command, "folder", None)
    groups = (MAIN, FAMILY, WORK)
    return About(
        is_known_chat=any(one.chat == target for one in groups),
        target=next((one for one in groups if one.chat == target), None),
        named=next(
            (one for one in groups if named and one.folder == named.lower() and one != asker), None
        ),
        owner=owner,
    )


@given(command=commands, owner=owners)
def test_nobody_but_main_reaches_beyond_their_own(command: Command, owner: Folder | None) -> None:
    reason = may(FAMILY, command, about(FAMILY, command, owner))
    match command:
        case SendMessage(target=target):
            assert (reason is None) == (target in (None, FAMILY.chat))
        case ScheduleTask(target=target, folder=folder):
            is_own = folder in (None, "family", "FAMILY") and target in (None, FAMILY.chat)
            assert (reason is None) == is_own
        case RegisterGroup() | RefreshGroups():
            assert reason is not None
        case _:
            is_own = command.folder in (None, "family", "FAMILY") and owner == FAMILY.folder
            assert (reason is None) == is_own


@given(command=commands, owner=owners)
def test_a_refusal_tells_nobody_whether_anothers_thing_exists(
    command: Command, owner: Folder | None
) -> None:
    seen = may(FAMILY, command, about(FAMILY, command, owner))
    assume(seen is not None)
    assert may(FAMILY, command, About()) == seen


@given(command=commands)
def test_what_anyone_may_do_for_themselves_main_may_do_for_itself(command: Command) -> None:
    is_plain = getattr(command, "target", None) is None and getattr(command, "folder", 0) is None
    if is_plain and may(FAMILY, command, about(FAMILY, command, FAMILY.folder)) is None:
        assert may(MAIN, command, about(MAIN, command, MAIN.folder)) is None


@given(command=commands, owner=owners)
def test_a_refusal_is_a_sentence(command: Command, owner: Folder | None) -> None:
    for asker in (MAIN, FAMILY):
        reason = may(asker, command, about(asker, command, owner))
        assert reason is None or (":" in reason and len(reason) < 400)


@pytest.mark.parametrize("key", ["kind", "command", "sandbox", "network", "image", "mounts"])
def test_main_cannot_open_a_sandbox(key: str) -> None:
    wish = RegisterGroup(chat="web:new", name="New", folder="new", agent={key: "x", "model": "m"})
    reason = may(MAIN, wish, About())
    assert reason is not None
    assert f"may not set '{key}' of a group" in reason
