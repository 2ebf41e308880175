"""What is logged, and what never is."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import structlog
from hallporter import logs

class Terminal:
    def __getattr__(self, name):
        return getattr(sys.__stderr__, name)
    def isatty(self):
        return {is_terminal}

sys.stderr = Terminal()
logs.configure("info")

def send(body, token):
    raise ZeroDivisionError("inside")

try:
    send("my diagnosis", "hp_secret")
except ZeroDivisionError:
    structlog.get_logger().exception("reply.failed", chat="web:main")
"""


def said(*, is_terminal: bool) -> str:
    program = PROGRAM.replace("{is_terminal}", str(is_terminal))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return done.stderr.decode()


def test_a_traceback_tells_where_and_never_what_people_said() -> None:
    for is_terminal in (True, False):
        text = said(is_terminal=is_terminal)
        assert "reply.failed" in text
        assert "ZeroDivisionError" in text
        assert "'my diagnosis'" not in text.replace('send("my diagnosis"', "")
        assert "token" not in text.replace("def send(body, token)", "")
