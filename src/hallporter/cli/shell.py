"""What every command shares: which home it works on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar

    from hallporter.cli.host import Client

    T = TypeVar("T")

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]


@dataclass(frozen=True, slots=True)
class Shell:
    """`named` is what `--home` says, if anything."""

    named: Path | None

    @property
    def home(self) -> Path:
        """Looked up on use only: help needs neither environment nor home."""
        if self.named is not None:
            return self.named
        from hallporter.home import default_home
        from hallporter.settings import environment

        return default_home(environment())


def shell_of(context: typer.Context) -> Shell:
    shell: Shell = context.find_root().obj
    return shell


def ask(context: typer.Context, work: Callable[[Client], Awaitable[T]]) -> T:
    """Run one piece of work against the host of the chosen home."""
    from hallporter.cli import host

    return host.ask(shell_of(context).home, work)
