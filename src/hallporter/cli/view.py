"""How a conversation looks: with a prompt at a terminal, as plain text elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Protocol

from hallporter.cli import screen
from hallporter.cli.outcome import spoken
from hallporter.domain.terminal import harmless

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

_CLEAR = "\r\x1b[2K"  # back to the start of the line, and empty it


class View(Protocol):
    """Where the words of others appear."""

    @property
    def is_terminal(self) -> bool:
        """Whether a person sits there."""
        ...

    def greet(self, chat: str) -> None: ...
    def show(self, message: Mapping[str, Any]) -> None: ...
    def failed(self) -> None: ...
    def typing(self, *, is_typing: bool) -> None: ...
    def prompt(self) -> None: ...
    def leave(self) -> None: ...


class Plain:
    """Replies only, so that they can be piped on."""

    is_terminal = False

    def greet(self, chat: str) -> None:
        """Nobody sits there."""

    def failed(self) -> None:
        """How it ends is told when it has ended."""

    def show(self, message: Mapping[str, Any]) -> None:
        if message["is_bot"]:
            screen.show(spoken(message))
            sys.stdout.flush()

    def typing(self, *, is_typing: bool) -> None:
        """Not shown: it is no text."""

    def prompt(self) -> None:
        """None is needed."""

    def leave(self) -> None:
        """Nothing to tidy."""


class _Harmless:
    """Drawn first and made harmless then: Markdown has names for characters, too."""

    def __init__(self, told: RenderableType) -> None:
        self._told = told

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.segment import Segment

        for text, style, control in console.render(self._told, options):
            yield Segment(harmless(text), style, control)


class Terminal:
    """A prompt that makes way for what comes in."""

    is_terminal = True

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console()
        self._is_typing = False

    def greet(self, chat: str) -> None:
        sys.stdout.write(f"Talking in {chat}. Ctrl-D leaves, /help tells what I understand.\n")

    def failed(self) -> None:
        sys.stdout.write(f"{_CLEAR}(no answer yet: that try failed)\n")
        self.prompt()

    def show(self, message: Mapping[str, Any]) -> None:
        from rich.markdown import Markdown
        from rich.text import Text

        sys.stdout.write(_CLEAR)
        sender = Text(message["sender"], style="bold cyan")
        # Without hyperlinks: a person sees where a link leads.
        text = Markdown(message["text"], hyperlinks=False)
        shown: list[RenderableType] = [sender, text, *map(Text, screen.files(message))]
        for told in shown:
            self._console.print(_Harmless(told))
        self.prompt()

    def typing(self, *, is_typing: bool) -> None:
        if is_typing != self._is_typing:
            self._is_typing = is_typing
            self.prompt()

    def prompt(self) -> None:
        sys.stdout.write(_CLEAR + ("… " if self._is_typing else "") + "> ")
        sys.stdout.flush()

    def leave(self) -> None:
        sys.stdout.write("\n")
