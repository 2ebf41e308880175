"""A message with a file, as an agent's request leaves it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallporter.domain.enclosure import Enclosure, FilePlace, media_type
from hallporter.domain.ids import ChatId, EnclosureId, Folder, MessageId
from hallporter.domain.message import Kind, Message
from tests.api.front import MAIN
from tests.fakes.ids import counting_id

if TYPE_CHECKING:
    from pathlib import Path

    from hallporter.books import Tx
    from tests.api.front import Front

HOSTILE = (
    "Grüße 東京 🎉.pdf",
    "<script>alert(1)<b>.html",
    '"; filename="x.exe',
    "a\r\nSet-Cookie: x=1.txt",
    "invoice\u202efdp.exe",
    "100%41; name*=UTF-8''x",
    "..\\..\\evil.bat",
    "x" * 255,
)


async def say_with_file(
    front: Front, home: Path, *, name: str = "plan.pdf", content: bytes = b"%PDF-1.7"
) -> Enclosure:
    """Said in main's chat, after its folder's file of this name was copied."""
    shown = FilePlace(parts=(name,)).name
    file = Enclosure(
        id=EnclosureId(counting_id("f")),
        folder=Folder("main"),
        name=shown,
        size=len(content),
        type=media_type(shown),
    )
    path = home / "data" / "media" / "main" / file.id
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)

    def fn(tx: Tx) -> None:
        tx.messages.add(
            Message(
                id=MessageId(counting_id("m")),
                chat=ChatId(MAIN),
                seq=tx.chats.raise_head(ChatId(MAIN)),
                ext_id=counting_id("x"),
                sender="Andy",
                sender_name="Andy",
                text="look",
                at=front.clock.now(),
                kind=Kind.REPLY,
                files=(file,),
            )
        )

    await front.store.write(fn)
    return file
