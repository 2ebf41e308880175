"""Groups of another system become ours, and its main becomes main."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hallporter.domain.chat import ChatSeen
from hallporter.domain.errors import InvalidRequestError
from hallporter.domain.folder import MAX_LENGTH, parse_folder
from hallporter.domain.group import MAX_NAME, Group, check_name
from hallporter.domain.ids import ChatId, Folder
from hallporter.domain.import_report import Noun
from hallporter.domain.trigger import check_trigger, default_trigger
from hallporter.switchboard.groups import MAIN_CHAT, MAIN_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from datetime import datetime

    from hallporter.books import Tx
    from hallporter.domain.foreign import ForeignGroup, ForeignHouse
    from hallporter.domain.import_report import Ledger
    from hallporter.ports import Channel

MAX_CHAT = 300  # characters of a chat's id
_RESERVED = "errors"  # ours alone: a group of theirs may well be called so
_LONGEST_STEM = MAX_LENGTH - 16  # characters: what is added to a name needs room


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """`folders` tells where a group of theirs is here, new or not; `groups` are by their folder."""

    groups: Mapping[str, Group]
    added: tuple[Group, ...] = ()
    unset: Group | None = None  # it was main
    removed: Group | None = None  # it has given way

    @property
    def folders(self) -> Mapping[str, Folder]:
        return {name: group.folder for name, group in self.groups.items()}


@dataclass(slots=True)
class _Taken:
    """Names and chats that are spoken for while it is decided."""

    folders: set[str]
    chats: Mapping[str, Group]  # of groups that were here before
    groups: dict[str, Group] = field(default_factory=dict)  # by their folder
    added: list[Group] = field(default_factory=list)


class ImportedGroups:
    """Decides what each group becomes; what is registered here already stays as it is."""

    def __init__(
        self,
        *,
        channel_of: Callable[[ChatId], Channel | None],
        check_agent: Callable[[Mapping[str, object]], Mapping[str, object]],
        assistant_name: str,
    ) -> None:
        self._channel_of = channel_of
        self._check_agent = check_agent
        self._assistant_name = assistant_name

    def decide(
        self,
        tx: Tx,
        theirs: Sequence[ForeignGroup],
        house: ForeignHouse,
        now: datetime,
        ledger: Ledger,
    ) -> Settled:
        """Reads only; `write` does what it says."""
        main = tx.groups.main()
        fit = list(_fit(theirs, ledger))
        wants_main = next((group for group in fit if group.is_main), None)
        is_new_main = wants_main is not None and self._is_new(tx, wants_main)
        gives_way = main if main is not None and is_new_main and self._is_unused(tx, main) else None
        ours = [group for group in tx.groups.all() if group != gives_way]
        taken = _Taken(
            folders={group.folder.casefold() for group in ours},
            chats={group.chat: group for group in ours},
        )
        for foreign in fit:
            is_main = foreign is wants_main and is_new_main
            self._decide_one(taken, foreign, house, now, ledger, is_main=is_main)
        if not any(group.is_main for group in taken.added):
            return Settled(groups=taken.groups, added=tuple(taken.added))
        if gives_way is not None and gives_way.chat not in {group.chat for group in taken.added}:
            what = (
                "nothing was ever said in it, so it has given way to the imported main; for a web"
                " chat register one: `hallporter groups add web:NAME --name N --folder F`"
            )
            ledger.note(str(Noun.GROUPS), what, gives_way.chat)
        elif main is not None and gives_way is None:
            ledger.note(str(Noun.GROUPS), "it is not main any more: the imported one is", main.chat)
        return Settled(
            groups=taken.groups,
            added=tuple(taken.added),
            unset=main if gives_way is None else None,
            removed=gives_way,
        )

    def write(self, tx: Tx, settled: Settled, channels: Mapping[str, str]) -> None:
        """`channels` are theirs, by chat."""
        if settled.removed is not None:
            tx.groups.remove(settled.removed.folder)
        if settled.unset is not None:
            tx.groups.save(replace(settled.unset, is_main=False))
        for group in settled.added:
            if tx.chats.get(group.chat) is None:
                channel = self._channel_of(group.chat)
                name = channel.name if channel is not None else channels.get(group.chat, "")
                tx.chats.seen(
                    ChatSeen(chat=group.chat, channel=name, at=group.added_at, name=group.name)
                )
            tx.groups.add(group)

    def _decide_one(
        self,
        taken: _Taken,
        foreign: ForeignGroup,
        house: ForeignHouse,
        now: datetime,
        ledger: Ledger,
        *,
        is_main: bool,
    ) -> None:
        if (known := taken.chats.get(foreign.chat)) is not None:
            taken.groups[foreign.folder] = known
            ledger.there(Noun.GROUPS)
            return
        folder = _free_folder(foreign.folder, taken.folders)
        if folder != foreign.folder:
            what = f"its folder {foreign.folder!r} is taken or reserved here: it has {folder!r}"
            ledger.mended(Noun.GROUPS, foreign.chat, what)
        own_name = house.assistant_name
        group = Group(
            chat=ChatId(foreign.chat),
            name=_name(foreign, ledger),
            folder=folder,
            trigger=_trigger(foreign, own_name or self._assistant_name, ledger),
            requires_trigger=foreign.requires_trigger,
            is_main=is_main,
            added_at=foreign.added_at or now,
            agent=self._agent(foreign, ledger),
            assistant_name=None if own_name == self._assistant_name else own_name,
            senders=foreign.senders,
        )
        for remark in foreign.remarks:
            ledger.note(str(Noun.GROUPS), remark, foreign.folder)
        if self._channel_of(group.chat) is None:
            what = (
                f"its channel ({foreign.channel or 'of no kind that is known'}) is not set up here:"
                " the group and its tasks are kept, and what its agent says is undeliverable"
                " until it is"
            )
            ledger.note(str(Noun.GROUPS), what, foreign.folder)
        ledger.carried(Noun.GROUPS)
        taken.folders.add(folder.casefold())
        taken.groups[foreign.folder] = group
        taken.added.append(group)

    def _is_new(self, tx: Tx, foreign: ForeignGroup) -> bool:
        """Whether its chat is nobody's here, or that of the main which the house made for itself;
        one that came by an earlier import is known by its age."""
        here = tx.groups.of_chat(ChatId(foreign.chat))
        if here is None:
            return True
        return here.is_main and here.added_at != foreign.added_at and self._is_unused(tx, here)

    def _is_unused(self, tx: Tx, group: Group) -> bool:
        """Made by the house itself, and nobody has said or set anything there."""
        chat = tx.chats.get(group.chat)
        is_plain = not group.agent and group.senders is None and group.assistant_name is None
        is_named_by_us = group.name == MAIN_NAME
        is_named_by_us &= group.trigger == default_trigger(self._assistant_name)
        is_silent = (chat is None or chat.head == 0) and not tx.tasks.of_folder(group.folder)
        return group.chat == MAIN_CHAT and is_plain and is_named_by_us and is_silent

    def _agent(self, foreign: ForeignGroup, ledger: Ledger) -> Mapping[str, object]:
        asked: dict[str, object] = {}
        if foreign.mounts:
            asked["mounts"] = [
                {"path": one.path, "name": one.name, "writable": one.writable}
                for one in foreign.mounts
            ]
        if foreign.timeout is not None:
            asked["timeout"] = foreign.timeout.total_seconds()
        kept: dict[str, object] = {}
        for key, value in asked.items():
            try:
                kept.update(self._check_agent({key: value}))
            except InvalidRequestError as error:
                ledger.mended(
                    Noun.GROUPS, foreign.folder, f"it has the house's own: {error.message}"
                )
        return kept


def is_chat(chat: str) -> bool:
    """Whether a chat can be known by this."""
    return 0 < len(chat) <= MAX_CHAT and chat.isprintable() and " " not in chat


def _fit(theirs: Sequence[ForeignGroup], ledger: Ledger) -> Iterator[ForeignGroup]:
    """Those that can be groups; of the others nothing is carried over, their files neither."""
    chats: set[str] = set()
    folders: set[str] = set()
    for foreign in theirs:
        if not (why := _unfit(foreign, chats, folders)):
            chats.add(foreign.chat)
            folders.add(foreign.folder)
            yield foreign
        else:
            ledger.skipped(Noun.GROUPS, foreign.folder, why)


def _unfit(foreign: ForeignGroup, chats: Collection[str], folders: Collection[str]) -> str:
    if not is_chat(foreign.chat):
        return f"{foreign.chat[:80]!r} is no chat's id"
    if foreign.chat in chats:
        return "its chat is there twice, and the first one counts"
    if foreign.folder in folders:
        return "its folder is there twice, and the first one counts"
    try:
        if foreign.folder.casefold() != _RESERVED:
            parse_folder(foreign.folder)
    except InvalidRequestError as error:
        return error.message
    return ""


def _free_folder(wanted: str, taken: set[str]) -> Folder:
    """Their own name, or one like it that nobody has."""
    if wanted.casefold() not in {*taken, _RESERVED}:
        return Folder(wanted)
    stem = f"{wanted[:_LONGEST_STEM]}-imported"
    names = itertools.chain((stem,), (f"{stem}-{number}" for number in itertools.count(2)))
    return next(parse_folder(name) for name in names if name.casefold() not in taken)


def _name(foreign: ForeignGroup, ledger: Ledger) -> str:
    name = "".join(letter if letter.isprintable() else " " for letter in foreign.name)
    name = " ".join(name.split())
    if not name:
        ledger.mended(Noun.GROUPS, foreign.folder, "it has no name: it is called by its folder")
        return foreign.folder
    if len(name) > MAX_NAME:
        ledger.mended(Noun.GROUPS, foreign.folder, f"its name is cut to {MAX_NAME} characters")
    return check_name(name[:MAX_NAME])


def _trigger(foreign: ForeignGroup, assistant: str, ledger: Ledger) -> str:
    usual = default_trigger(assistant)
    if not foreign.trigger:
        return usual
    try:
        trigger = check_trigger(foreign.trigger)
    except InvalidRequestError as error:
        ledger.mended(Noun.GROUPS, foreign.folder, f"it has the trigger {usual!r}: {error.message}")
        return usual
    if trigger != usual and foreign.requires_trigger and not foreign.is_main:
        what = f"its own trigger {trigger!r} counts here; NanoClaw may have listened to {usual!r}"
        ledger.note(str(Noun.GROUPS), what, foreign.folder)
    return trigger
