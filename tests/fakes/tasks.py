"""A task as tests need one."""

from __future__ import annotations

from hallporter.domain.ids import ChatId, Folder, TaskId
from hallporter.domain.schedule import Schedule, Type
from hallporter.domain.task import ContextMode, Misfire, Status, Task
from tests.fakes.clock import START
from tests.fakes.ids import counting_id


def a_task(
    chat: ChatId,
    *,
    prompt: str = "water the plants",
    mode: ContextMode = ContextMode.GROUP,
    status: Status = Status.ACTIVE,
) -> Task:
    """Every hour, from the tests' beginning on."""
    is_active = status is Status.ACTIVE
    return Task(
        id=TaskId(counting_id("task")),
        folder=Folder(chat.partition(":")[2]),
        chat=chat,
        prompt=prompt,
        schedule=Schedule(type=Type.INTERVAL, value="3600000", timezone="UTC"),
        context_mode=mode,
        misfire=Misfire.ONCE,
        status=status,
        anchor=START,
        next_at=START if is_active else None,
        created_at=START,
        created_by="operator",
    )
