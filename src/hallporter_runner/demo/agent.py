"""The demo agent at work: what was said goes in, an answer comes out, perhaps slowly."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hallporter_runner.demo.conversation import listen
from hallporter_runner.demo.memory import Memory
from hallporter_runner.demo.skills import answer_to
from hallporter_runner.demo.visit import Visit
from hallporter_runner.mail import Mail
from hallporter_runner.toolset import Toolset

if TYPE_CHECKING:
    from hallporter_runner.agents import Batch
    from hallporter_runner.desk import Desk
    from hallporter_runner.workplace import Workplace
    from hallporter_wire.reading import Heard
    from hallporter_wire.stdin import AgentInput


def open_agent(start: AgentInput, workplace: Workplace) -> DemoAgent:
    """The demo agent of one runner."""
    return DemoAgent(
        start=start,
        workplace=workplace,
        memory=Memory(workplace.group, session_id=start.session_id),
    )


class DemoAgent:
    """Answers by rule; remembers only how many messages the session has had."""

    def __init__(self, *, start: AgentInput, workplace: Workplace, memory: Memory) -> None:
        self._start = start
        self._toolset = Toolset(Mail(workplace.ipc), is_main=start.is_main)
        self._workplace = workplace
        self._memory = memory

    def answer(self, batch: Batch, desk: Desk) -> None:
        """One answer for the whole batch, and for what is said while it is being made."""
        desk.session_id = self._memory.session_id
        talk = listen(batch.prompts)
        seen = self._memory.count(len(talk.heard))
        visit = Visit(
            name=self._start.assistant_name,
            talk=talk,
            seen=seen,
            workplace=self._workplace,
            toolset=self._toolset,
            folder=self._start.group_folder,
            is_main=self._start.is_main,
            is_task=self._start.is_scheduled_task,
        )
        answer = answer_to(visit)
        meanwhile = self._work(answer.seconds, desk)
        words = [*answer.parts]
        if words and (notes := [*_others(talk.others), *_meanwhile(meanwhile)]):
            words[-1] = "\n\n".join([words[-1], *notes])
        for part in words[:-1]:
            desk.reply(part, more=True)
        desk.reply(words[-1] if words else None)

    def _work(self, seconds: float, desk: Desk) -> tuple[Heard, ...]:
        """Be busy for a while, with an open ear."""
        heard: list[Heard] = []
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            batch = desk.wait(left)
            if batch is not None:
                said = listen(batch.prompts).heard
                self._memory.count(len(said))
                heard += said
        return tuple(heard)


def _others(others: tuple[Heard, ...]) -> list[str]:
    if not others:
        return []
    names = list(dict.fromkeys(said.sender for said in others if said.sender))
    count = "one other message" if len(others) == 1 else f"{len(others)} other messages"
    return [f"(I also read {count}{' from ' + ', '.join(names) if names else ''}.)"]


def _meanwhile(heard: tuple[Heard, ...]) -> list[str]:
    if not heard:
        return []
    return ["While I worked you also said:", "\n".join(f"- {said.text}" for said in heard)]
