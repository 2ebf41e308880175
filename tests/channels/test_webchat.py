from __future__ import annotations

from hallporter.channels.webchat import WebChat
from hallporter.domain.happening import TypingChanged
from hallporter.domain.ids import ChatId
from hallporter.stores.feed import MemoryFeed


async def test_typing_is_told_to_those_who_follow_the_chat() -> None:
    feed = MemoryFeed()
    chat = ChatId("web:main")
    async with feed.subscribe(chat) as events:
        await WebChat(feed=feed).typing(chat, is_typing=True)
        assert await anext(events) == TypingChanged(chat=chat, typing=True)


async def test_a_long_text_stays_in_one_piece() -> None:
    text = "word " * 100_000
    assert WebChat(feed=MemoryFeed()).compose(text) == (text,)
