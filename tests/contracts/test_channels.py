from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest

from hallporter.channels.splitting import MIN_LIMIT
from hallporter.domain.enclosure import Enclosure
from hallporter.domain.errors import ChannelDownError, MessageRefusedError
from hallporter.domain.ids import ChatId, EnclosureId, Folder, MessageId
from hallporter.domain.message import Inbound, Kind, Message
from hallporter.ports import Channel
from tests.api.front import Front, open_front
from tests.fakes.channel import FakeChannel

FILE = Enclosure(
    id=EnclosureId("f_1"), folder=Folder("chat"), name="a.txt", size=1, type="text/plain"
)


class Network(Protocol):
    """A channel and the people on its other side."""

    front: Front
    channel: Channel
    chat: ChatId
    strangers: Sequence[str]

    async def connect(self) -> None: ...
    async def hear(self, text: str) -> None:
        """Someone says something in the chat."""

    async def send(self, body: str, id: str) -> None:
        """Send as delivery does: what is sent has its row in the transcript."""

    async def shown(self) -> Sequence[str]:
        """What people in the chat can see of ours."""
        ...


class WebNetwork:
    """The web chat: people speak through the intake, and read the store."""

    strangers: Sequence[str] = (
        "web:",
        "web:a/b",
        "web:" + "x" * 65,
        "web:ä",
        "fake:one",
        "main",
        "WEB:main",
    )

    def __init__(self, front: Front) -> None:
        self.front = front
        self.channel: Channel = front.web
        self.chat = ChatId("web:my.chat_1-a")

    async def connect(self) -> None:
        await self.channel.connect(self.front.desk.intake)

    async def hear(self, text: str) -> None:
        await self.front.register(self.chat, "chat")
        await self.front.desk.intake.accept(
            Inbound(
                chat=self.chat,
                ext_id="1",
                sender="ann",
                sender_name="Ann",
                text=text,
                sent_at=self.front.clock.now(),
            )
        )

    async def send(self, body: str, id: str) -> None:
        if (await self.front.store.read(lambda tx: tx.messages.get(MessageId(id)))) is None:
            await self.front.register(self.chat, "chat")
            await self.front.store.write(
                lambda tx: tx.messages.add(
                    Message(
                        id=MessageId(id),
                        chat=self.chat,
                        seq=tx.chats.raise_head(self.chat),
                        ext_id=id,
                        sender="Andy",
                        sender_name="Andy",
                        text=body,
                        at=self.front.clock.now(),
                        kind=Kind.REPLY,
                    )
                )
            )
        await self.channel.send(self.chat, body, id)

    async def shown(self) -> Sequence[str]:
        page = await self.front.desk.story.page(self.chat, after=None, limit=200)
        return [message.text for message in page.messages if message.is_bot]


class FakeNetwork:
    """The channel of the other tests, held to the same rules."""

    strangers: Sequence[str] = ("web:main", "one", "")

    def __init__(self, front: Front, channel: FakeChannel) -> None:
        self.front = front
        self.fake = channel
        self.channel: Channel = channel
        self.chat = ChatId("fake:one")

    async def connect(self) -> None:
        await self.channel.connect(self.front.desk.intake)

    async def hear(self, text: str) -> None:
        await self.front.register(self.chat, "chat")
        await self.fake.hear(self.chat, text)

    async def send(self, body: str, id: str) -> None:
        await self.channel.send(self.chat, body, id)

    async def shown(self) -> Sequence[str]:
        return [body for _, body, _ in self.fake.sent]


@pytest.fixture(params=["web", "fake", "fake without message ids", "fake with a limit"])
async def network(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Network]:
    async with open_front(tmp_path) as front:
        await front.web.disconnect()
        match request.param:
            case "web":
                yield WebNetwork(front)
            case "fake":
                yield FakeNetwork(front, FakeChannel(takes_files=True))
            case "fake without message ids":
                yield FakeNetwork(front, FakeChannel(takes_message_id=False))
            case _:
                yield FakeNetwork(front, FakeChannel(limit=MIN_LIMIT))


@pytest.mark.requirement("channel.port.name")
async def test_it_has_a_name(network: Network) -> None:
    assert network.channel.name


@pytest.mark.requirement("channel.port.owns-jid")
async def test_it_owns_its_own_chats_only(network: Network) -> None:
    assert network.channel.owns(network.chat)
    assert not any(network.channel.owns(ChatId(chat)) for chat in network.strangers)


@pytest.mark.requirement(
    "channel.port.connect", "channel.port.is-connected", "channel.port.disconnect"
)
async def test_its_health_follows_the_connection(network: Network) -> None:
    assert not network.channel.health().ok
    assert network.channel.health().why
    await network.connect()
    assert network.channel.health().ok
    await network.channel.disconnect()
    assert not network.channel.health().ok


async def test_disconnecting_twice_is_no_harm(network: Network) -> None:
    await network.connect()
    await network.channel.disconnect()
    await network.channel.disconnect()


async def test_what_people_say_is_handed_in(network: Network) -> None:
    await network.connect()
    await network.hear("hello")
    page = await network.front.desk.story.page(network.chat, after=None, limit=10)
    assert [message.text for message in page.messages] == ["hello"]


async def test_the_chat_itself_is_made_known(network: Network) -> None:
    await network.connect()
    await network.hear("hello")
    chat = await network.front.store.read(lambda tx: tx.chats.get(network.chat))
    assert chat is not None
    assert chat.channel == network.channel.name


@pytest.mark.requirement("channel.port.send-message", "channel.port.many-networks")
async def test_what_was_sent_can_be_seen(network: Network) -> None:
    await network.connect()
    await network.send("good day", "m_1")
    assert list(await network.shown()) == ["good day"]


async def test_a_file_goes_along_without_trouble_where_files_are_taken(network: Network) -> None:
    await network.connect()
    if network.channel.capabilities.files:
        await network.channel.send(network.chat, "", "m_1", (FILE,))


async def test_a_repeat_under_the_same_id_is_shown_once_where_ids_are_taken(
    network: Network,
) -> None:
    await network.connect()
    await network.send("good day", "m_1")
    await network.send("good day", "m_1")
    times = 1 if network.channel.capabilities.takes_message_id else 2
    assert list(await network.shown()) == ["good day"] * times


@pytest.mark.requirement("channel.port.typing-optional")
async def test_typing_is_shown_without_trouble(network: Network) -> None:
    await network.connect()
    await network.channel.typing(network.chat, is_typing=True)
    await network.channel.typing(network.chat, is_typing=False)


@pytest.mark.parametrize("text", ["x", "word " * 100, "x" * 100, "```py\n" + "a\n" * 50 + "```"])
async def test_a_text_is_composed_into_parts_within_the_limit(network: Network, text: str) -> None:
    parts = network.channel.compose(text)
    limit = network.channel.capabilities.limit
    assert parts
    assert all(part and (limit is None or len(part) <= limit) for part in parts)


async def test_a_fake_network_that_is_away_says_so() -> None:
    channel = FakeChannel()
    channel.is_down = True
    with pytest.raises(ChannelDownError):
        await channel.send(ChatId("fake:one"), "hello", "m_1")


async def test_a_fake_network_can_refuse_a_message_for_good() -> None:
    channel = FakeChannel()
    channel.refuses = "spam"
    with pytest.raises(MessageRefusedError):
        await channel.send(ChatId("fake:one"), "spam, spam", "m_1")
