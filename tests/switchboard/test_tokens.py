"""Bearer tokens: made once, shown once, looked up by hash."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from hallporter.domain.errors import InvalidRequestError, NotFoundError
from hallporter.domain.token import Caller, Role
from hallporter.stores.feed import MemoryFeed
from hallporter.stores.sqlite import SqliteStore, open_store
from hallporter.switchboard.tokens import Tokens
from tests.fakes.clock import FakeClock
from tests.fakes.ids import counting_id


@dataclass(frozen=True)
class Door:
    tokens: Tokens
    store: SqliteStore
    clock: FakeClock
    folder: Path


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Door]:
    clock = FakeClock()
    async with open_store(tmp_path / "hallporter.db", clock) as store:
        tokens = Tokens(store=store, clock=clock, feed=MemoryFeed(), new_id=counting_id)
        yield Door(tokens, store, clock, tmp_path)


async def test_whoever_holds_the_secret_is_known_by_it(door: Door) -> None:
    made = await door.tokens.create(role="consumer_app", subject=" ada ", chat="web:ada")

    caller = await door.tokens.caller(made.secret)

    assert made.secret.startswith("hp_")
    assert caller == Caller(subject="ada", role=Role.CONSUMER_APP, chat=made.token.chat)
    assert await door.tokens.caller(made.secret + "x") is None
    assert await door.tokens.caller("") is None


async def test_the_secret_is_nowhere_in_the_store(door: Door) -> None:
    made = await door.tokens.create(role="studio_operator", subject="boss")

    secret = made.secret.encode()
    assert not any(secret in file.read_bytes() for file in door.folder.iterdir())
    assert made.secret not in repr(await door.tokens.all())


async def test_two_tokens_never_have_the_same_secret(door: Door) -> None:
    made = [await door.tokens.create(role="consumer_app", subject="ada") for _ in range(5)]

    assert len({created.secret for created in made}) == 5
    assert [token.id for token in await door.tokens.all()] == [c.token.id for c in made]


async def test_a_revoked_token_is_refused_at_once(door: Door) -> None:
    made = await door.tokens.create(role="consumer_app", subject="ada")
    assert await door.tokens.caller(made.secret) is not None

    first = await door.tokens.revoke(made.token.id)
    door.clock.advance(timedelta(hours=1))
    again = await door.tokens.revoke(made.token.id)

    assert await door.tokens.caller(made.secret) is None
    assert first.revoked_at == again.revoked_at
    with pytest.raises(NotFoundError):
        await door.tokens.revoke("tok_none")


async def test_a_token_ends_when_it_was_said_to(door: Door) -> None:
    made = await door.tokens.create(
        role="consumer_app", subject="ada", expires_in=timedelta(days=30)
    )
    door.clock.advance(timedelta(days=29))
    assert await door.tokens.caller(made.secret) is not None

    door.clock.advance(timedelta(days=1))

    assert await door.tokens.caller(made.secret) is None


async def test_the_last_use_is_noted_but_not_with_every_request(door: Door) -> None:
    made = await door.tokens.create(role="consumer_app", subject="ada")
    uses = []
    for seconds in (0, 30, 40):
        door.clock.advance(timedelta(seconds=seconds))
        await door.tokens.caller(made.secret)
        uses.append((await door.tokens.all())[0].used_at)

    assert uses[0] == uses[1]
    assert uses[2] == door.clock.now()


@pytest.mark.parametrize(
    ("role", "subject", "expires", "field"),
    [
        ("king", "ada", None, "role"),
        ("consumer_app", "  ", None, "subject"),
        ("consumer_app", "x" * 201, None, "subject"),
        ("consumer_app", " Operator ", None, "subject"),
        ("consumer_app", "ada", timedelta(0), "expires"),
        ("consumer_app", "ada", timedelta(days=-1), "expires"),
    ],
)
async def test_what_does_not_fit_is_refused(
    door: Door, role: str, subject: str, expires: timedelta | None, field: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        await door.tokens.create(role=role, subject=subject, expires_in=expires)

    assert caught.value.facts["field"] == field
    assert await door.tokens.all() == []
