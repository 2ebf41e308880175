from __future__ import annotations

import socket

from hallporter.service import _listening


def test_the_door_is_one_on_which_small_answers_do_not_wait() -> None:
    # asyncio sets TCP_NODELAY on sockets whose protocol is TCP by name, and on no others.
    with _listening("127.0.0.1", 0) as door:
        assert door.proto == socket.IPPROTO_TCP
