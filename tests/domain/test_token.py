"""Who may use which chat, and how long a token lives."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hallporter.domain.ids import ChatId, TokenId
from hallporter.domain.token import Caller, Role, Token, digest

NOW = datetime(2026, 2, 19, 10, 0, tzinfo=UTC)
TOKEN = Token(
    id=TokenId("tok_1"),
    digest=digest("hp_secret"),
    role=Role.CONSUMER_APP,
    subject="ada",
    created_at=NOW,
)


def test_a_token_without_an_end_is_valid_until_it_is_revoked() -> None:
    assert TOKEN.is_valid(NOW + timedelta(days=3650))
    assert not replace(TOKEN, revoked_at=NOW).is_valid(NOW)


def test_a_token_is_valid_up_to_its_end_and_not_at_it() -> None:
    token = replace(TOKEN, expires_at=NOW + timedelta(hours=1))

    assert token.is_valid(NOW + timedelta(minutes=59))
    assert not token.is_valid(NOW + timedelta(hours=1))


def test_an_operator_may_use_every_chat_and_a_consumer_only_their_own() -> None:
    here, there = ChatId("web:a"), ChatId("web:b")
    operator = Caller(subject="boss", role=Role.STUDIO_OPERATOR)
    consumer = Caller(subject="ada", role=Role.CONSUMER_APP, chat=here)
    stranger = Caller(subject="eve", role=Role.CONSUMER_WHATSAPP)

    assert operator.may_use(here)
    assert consumer.may_use(here)
    assert not consumer.may_use(there)
    assert not stranger.may_use(here)


def test_a_digest_is_not_the_secret_and_tells_secrets_apart() -> None:
    assert "secret" not in TOKEN.digest
    assert digest("hp_secret") == TOKEN.digest
    assert digest("hp_secre1") != TOKEN.digest
