"""What agents ask the host to do: looked up, judged, and carried out once, with a record."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from hallporter.domain.authority import About, is_own, may
from hallporter.domain.command import (
    Box,
    CancelTask,
    Carried,
    Command,
    PauseTask,
    RefreshGroups,
    RegisterGroup,
    ResumeTask,
    RunTask,
    ScheduleTask,
    SendMessage,
    TaskControl,
    UpdateTask,
)
from hallporter.domain.errors import InvalidRequestError, RefusedError, UnregisteredError
from hallporter.domain.ids import TaskId
from hallporter.domain.message import Kind
from hallporter.domain.reply import presentable
from hallporter.ports import Refreshing
from hallporter.switchboard.groups import NewGroup
from hallporter.switchboard.outbound import Words
from hallporter.switchboard.tasks import NewTask, TaskChange

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hallporter.books import Tx
    from hallporter.domain.enclosure import Enclosure
    from hallporter.domain.group import Group
    from hallporter.domain.ids import CommandId, Folder
    from hallporter.domain.task import Task
    from hallporter.ports import Channel, Clock, Store
    from hallporter.switchboard.enclosures import Enclosures
    from hallporter.switchboard.groups import Groups
    from hallporter.switchboard.outbound import Outbound
    from hallporter.switchboard.tasks import Tasks

log = structlog.get_logger(__name__)

_REFRESH = timedelta(seconds=3)  # for the networks; the agent waits for its result
_MAX_SENDER = 64  # characters

# The names that requests have for them.
_KINDS: Mapping[type[Command], str] = {
    SendMessage: "message",
    ScheduleTask: "schedule_task",
    UpdateTask: "update_task",
    PauseTask: "pause_task",
    ResumeTask: "resume_task",
    CancelTask: "cancel_task",
    RunTask: "run_task",
    RegisterGroup: "register_group",
    RefreshGroups: "refresh_groups",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A command and where it came from. The id makes it happen once."""

    id: CommandId
    folder: Folder
    box: Box
    name: str  # of its file
    command: Command
    file: Enclosure | None = None  # a copy of the one that its message names
    problem: str = "the file could not be fetched: ask again"  # if there is none


class Commands:
    """The use cases behind the files that agents write."""

    def __init__(
        self,
        *,
        store: Store,
        tasks: Tasks,
        groups: Groups,
        outbound: Outbound,
        enclosures: Enclosures,
        channels: Sequence[Channel],
        clock: Clock,
    ) -> None:
        self._store = store
        self._tasks = tasks
        self._groups = groups
        self._outbound = outbound
        self._enclosures = enclosures
        self._channels = channels
        self._clock = clock

    async def prepare(self, asked: Asked) -> Asked:
        """What a message brings along is copied now: no transaction waits for a disk."""
        message = asked.command
        if not isinstance(message, SendMessage) or message.file is None:
            return asked
        ends = await self._store.read(lambda tx: _ends(tx, asked, message))
        if ends is None:
            return asked
        try:
            file = await self._enclosures.fetch(*ends, message.file)
        except RefusedError as error:
            return replace(asked, problem=error.message)
        return replace(asked, file=file)

    async def carry_out(self, asked: Asked) -> Carried:
        """The effect and its record are one transaction; what was carried out before is only told
        again. Raises `UnregisteredError` for a folder of no group."""
        try:
            carried = await self._store.write(lambda tx: self._carry_out(tx, asked))
        except UnregisteredError:
            raise
        except RefusedError as error:
            if asked.file is not None:
                await self._enclosures.discard(asked.file)
            # In a transaction of its own: whatever the command had begun was undone.
            why = error.message
            carried = await self._store.write(lambda tx: self._record(tx, asked, why, {}))
        if carried.is_ok and isinstance(asked.command, RefreshGroups):
            await self._refresh()
        log.info("command.carried_out", id=carried.id, kind=carried.kind, ok=carried.is_ok)
        return carried

    def _carry_out(self, tx: Tx, asked: Asked) -> Carried:
        if (before := tx.commands.get(asked.id)) is not None:
            return before
        group = tx.groups.of_folder(asked.folder)
        if group is None or group.folder != asked.folder:
            message = f"the folder {asked.folder!r} belongs to no group"
            raise UnregisteredError(message, folder=asked.folder)
        reason = may(group, asked.command, _about(tx, group, asked.command))
        if reason is not None:
            raise RefusedError(reason)
        return self._record(tx, asked, "", self._act(tx, group, asked))

    def _act(self, tx: Tx, group: Group, asked: Asked) -> Mapping[str, object]:
        """What there is to tell of the effect."""
        match asked.command:
            case SendMessage() as message:
                return self._send(tx, group, message, asked)
            case ScheduleTask() as wanted:
                return _told(self._tasks.create(tx, _new_task(tx, group, wanted)))
            case UpdateTask() as update:
                return _told(self._tasks.change(tx, update.task, _change(update)))
            case PauseTask(task=task):
                return _told(self._tasks.pause(tx, task))
            case ResumeTask(task=task):
                return _told(self._tasks.resume(tx, task))
            case CancelTask(task=task):
                return {"task_id": self._tasks.cancel(tx, task).id}
            case RunTask(task=task):
                return {"task_id": self._tasks.run_now(tx, task).task}
            case RegisterGroup() as wish:
                registered = self._groups.register(tx, _new_group(wish))
                return {"folder": registered.folder, "chat": registered.chat}
            case RefreshGroups():
                return {}

    def _send(
        self, tx: Tx, group: Group, message: SendMessage, asked: Asked
    ) -> Mapping[str, object]:
        if message.file is not None and asked.file is None:
            raise RefusedError(asked.problem)
        text = _spoken(message)
        if not text and asked.file is None:
            return {"sent": False}
        chat = group.chat if message.target is None else message.target
        # A turn is part of its own chat's story alone.
        turn = tx.turns.open_in(chat) if chat == group.chat else None
        said = self._outbound.put(
            tx,
            Words(
                chat=chat,
                key=f"cmd:{asked.id}",
                text=text,
                kind=Kind.REPLY,
                why="" if chat == group.chat else f"asked by '{group.folder}'",
                turn=None if turn is None else turn.id,
                files=() if asked.file is None else (asked.file,),
            ),
        )
        return {"sent": True, "message_id": said}

    def _record(self, tx: Tx, asked: Asked, why: str, result: Mapping[str, object]) -> Carried:
        carried = Carried(
            id=asked.id,
            folder=asked.folder,
            box=asked.box,
            name=asked.name,
            at=self._clock.now(),
            kind=_KINDS[type(asked.command)],
            is_ok=not why,
            why=why,
            result=result,
        )
        tx.commands.add(carried)
        return carried

    async def _refresh(self) -> None:
        """A network that does not answer is said in the log; what is known is shown anyway."""
        for channel in self._channels:
            if not isinstance(channel, Refreshing):
                continue
            try:
                async with asyncio.timeout(_REFRESH.total_seconds()):
                    await channel.refresh()
            except Exception:  # the border to a network's library
                log.exception("channel.failed", channel=channel.name, what="refresh")


def _ends(tx: Tx, asked: Asked, message: SendMessage) -> tuple[Group, Folder] | None:
    """Whose file it is and whose folder keeps the copy; None when nothing will be sent."""
    group = tx.groups.of_folder(asked.folder)
    if group is None or group.folder != asked.folder or tx.commands.get(asked.id) is not None:
        return None
    if may(group, message, _about(tx, group, message)) is not None:
        return None
    receiver = group if message.target is None else tx.groups.of_chat(message.target)
    return group, (group if receiver is None else receiver).folder


def _about(tx: Tx, group: Group, command: Command) -> About:
    target = command.target if isinstance(command, SendMessage | ScheduleTask) else None
    folder = None if isinstance(command, SendMessage | RegisterGroup) else command.folder
    task = tx.tasks.get(command.task) if isinstance(command, TaskControl) else None
    return About(
        is_known_chat=target is not None and tx.chats.get(target) is not None,
        target=None if target is None else tx.groups.of_chat(target),
        named=None if is_own(group, folder) else tx.groups.of_folder(folder or ""),
        owner=None if task is None else task.folder,
    )


def _spoken(message: SendMessage) -> str:
    """As the chat gets to see it; nothing internal leaves, wherever it was hidden."""
    text = presentable(message.text)
    sender = " ".join(presentable(message.sender).split())
    if len(sender) > _MAX_SENDER:
        raise InvalidRequestError(
            f"the sender's name has {len(sender)} characters: at most {_MAX_SENDER} are shown"
        )
    return presentable(f"{sender}: {text}") if sender and text else text


def _new_task(tx: Tx, group: Group, wanted: ScheduleTask) -> NewTask:
    target: Group | None = group
    if not is_own(group, wanted.folder):
        target = tx.groups.of_folder(wanted.folder or "")
    elif wanted.target is not None:
        target = tx.groups.of_chat(wanted.target)
    known = None if wanted.id is None else tx.tasks.get(TaskId(wanted.id))
    # Nobody but main learns from an id that is taken that others have a task.
    is_hidden = known is not None and not group.is_main and known.folder != group.folder
    return NewTask(
        folder=group.folder if target is None else target.folder,
        prompt=wanted.prompt,
        schedule_type=wanted.schedule_type,
        schedule_value=wanted.schedule_value,
        created_by=group.folder,
        id=None if is_hidden else wanted.id,
        context_mode=wanted.context_mode,
        timezone=wanted.timezone,
        misfire=wanted.misfire,
    )


def _change(update: UpdateTask) -> TaskChange:
    return TaskChange(
        prompt=update.prompt,
        schedule_type=update.schedule_type,
        schedule_value=update.schedule_value,
        context_mode=update.context_mode,
        timezone=update.timezone,
        misfire=update.misfire,
    )


def _new_group(wish: RegisterGroup) -> NewGroup:
    return NewGroup(
        chat=wish.chat,
        name=wish.name,
        folder=wish.folder,
        trigger=wish.trigger,
        requires_trigger=wish.requires_trigger,
        agent=wish.agent,
        assistant_name=wish.assistant_name,
    )


def _told(task: Task) -> Mapping[str, object]:
    return {
        "task_id": task.id,
        "status": str(task.status),
        "next_run": None if task.next_at is None else task.next_at.isoformat(),
    }
