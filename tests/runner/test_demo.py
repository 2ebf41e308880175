from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from hallporter_runner.agents import AgentError
from hallporter_runner.demo.conversation import listen
from hallporter_runner.demo.memory import Memory
from hallporter_runner.demo.skills import answer_to
from hallporter_runner.demo.visit import Answer, Visit
from hallporter_runner.mail import Mail
from hallporter_runner.toolset import Toolset
from hallporter_runner.workplace import Workplace
from hallporter_wire.prompt import Context, Utterance, format_prompt

NOW = datetime(2026, 2, 19, 22, 30, tzinfo=UTC)


def prompt(*lines: tuple[str, str], attempt: int = 1) -> str:
    said = [Utterance(id="m", at=NOW, sender=sender, text=text) for sender, text in lines]
    return format_prompt(
        said, Context(now=NOW, timezone="Africa/Cairo", attempt=attempt, omitted=0)
    )


def ask(text: str, *, sender: str = "Mina", attempt: int = 1, raw: bool = False) -> Answer:
    prompts = (text if raw else prompt((sender, text), attempt=attempt),)
    workplace = Workplace(root=Path("/nowhere"), sandbox="bubblewrap")
    return answer_to(
        Visit(
            name="Andy",
            talk=listen(prompts),
            seen=3,
            workplace=workplace,
            toolset=Toolset(Mail(workplace.ipc), is_main=True),
            folder="main",
        )
    )


def reply_to(text: str, *, sender: str = "Mina", attempt: int = 1, raw: bool = False) -> str:
    (reply,) = ask(text, sender=sender, attempt=attempt, raw=raw).parts
    return reply


@pytest.mark.parametrize("hello", ["hello", "Hi!", "@Andy hello there", "مرحبا", "@201234567 hey"])
def test_it_greets_the_sender_by_name(hello: str) -> None:
    assert reply_to(hello, sender='Zoë "Z" <z>').startswith('Hello, Zoë "Z" <z>! I am Andy')


@pytest.mark.parametrize("question", ["help", "Help!", "What can you do?", "?", "", "@Andy"])
def test_it_says_what_to_try(question: str) -> None:
    assert reply_to(question).startswith("Try one of these:")


@pytest.mark.parametrize("line", ["a < b && c", "@Mina\nsecond line", "</message></messages>"])
def test_it_echoes_word_for_word(line: str) -> None:
    assert reply_to(f"@Andy echo {line}") == line


@pytest.mark.parametrize(
    ("request_", "reply"),
    [
        ("count to 5", "1, 2, 3, 4, 5."),
        ("Count up to 0", "There is nothing to count."),
        ("count words in one two  three", "Those are 3 words."),
        ("count the words in: one", "That is one word."),
    ],
)
def test_it_counts(request_: str, reply: str) -> None:
    assert reply_to(request_) == reply


def test_it_does_not_count_for_ever() -> None:
    assert reply_to("count to 999999999").endswith("and so on to 999999999; I stop at 100.")
    assert ask("work slowly for 999999999 seconds").seconds == 600


def test_it_tells_the_time_of_the_chat() -> None:
    assert reply_to("what time is it?") == "It is 00:30 on Friday, 20 February 2026 (Africa/Cairo)."


def test_without_a_time_from_the_host_it_says_so() -> None:
    assert reply_to("time", raw=True).startswith("The host did not tell me the time.")


def test_it_says_what_it_sees_of_its_sandbox() -> None:
    report = reply_to("where are you?")
    assert report.startswith("I run in the sandbox `bubblewrap`.")
    for sight in ("user id", "network interfaces", "the system `/`", "/nowhere"):
        assert sight in report


def test_it_shows_a_long_formatted_answer() -> None:
    answer = reply_to("show formatting")
    for sign in ("# A tour", "1. First", "| room |", "```python", "من اليمين"):
        assert sign in answer


@pytest.mark.parametrize(
    ("request_", "seconds"),
    [
        ("work slowly for 20 seconds", 20),
        ("work slowly for 3s", 3),
        ("work slowly", 10),
        ("count slowly to 10", 10),
    ],
)
def test_it_works_slowly_on_request(request_: str, seconds: float) -> None:
    assert ask(request_).seconds == seconds


def test_it_stays_silent_on_request() -> None:
    assert ask("say nothing").parts == ()


def test_it_fails_on_request_and_once_only_if_so_asked() -> None:
    with pytest.raises(AgentError, match="because it was asked to"):
        ask("fail")
    with pytest.raises(AgentError, match="first attempt"):
        ask("fail once")
    assert reply_to("fail once", attempt=2) == "This is attempt 2, and it works."


def test_anything_else_is_repeated_with_things_to_try() -> None:
    reply = reply_to("please book a table\nfor two")
    assert "> please book a table\n> for two" in reply
    assert "no model" in reply
    assert "(Message 3 of this session.)" in reply
    assert all(f"`{hint}`" in reply for hint in ("where are you?", "show formatting", "help"))


def test_a_long_text_is_repeated_in_part() -> None:
    assert len(reply_to("blah " * 10_000)) < 1000


def test_the_last_message_with_a_mention_is_the_request() -> None:
    talk = listen((prompt(("Mina", "@Andy count to 3"), ("James", "no, wait")),))
    assert (talk.request.sender, talk.request.text) == ("Mina", "count to 3")
    assert [said.text for said in talk.others] == ["no, wait"]


def test_without_a_mention_the_last_message_is_the_request() -> None:
    talk = listen((prompt(("Mina", "hello")), prompt(("James", "help")), "time"))
    assert talk.request.text == "time"
    assert [said.sender for said in talk.others] == ["Mina", "James"]


def test_nothing_heard_is_an_empty_request() -> None:
    talk = listen((prompt(),))
    assert (talk.heard, talk.request.text) == ((), "")


def test_a_session_it_did_not_make_is_replaced(tmp_path: Path) -> None:
    assert Memory(tmp_path, session_id="../../etc/passwd").session_id.startswith("demo-")


def test_a_folder_that_cannot_be_written_costs_nothing_but_the_memory(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "missing", session_id=None)
    assert [memory.count(2), memory.count(1)] == [2, 3]
