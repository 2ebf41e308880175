from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
import structlog

from hallporter.api.errors import STATUS
from hallporter.domain.errors import HallporterError
from tests.api.front import ADMIN, MAIN, Front

MESSAGES = f"/api/chats/{MAIN}/messages"


def branches(error: type[HallporterError]) -> Iterator[type[HallporterError]]:
    yield error
    for branch in error.__subclasses__():
        yield from branches(branch)


def test_every_error_of_ours_has_a_status() -> None:
    assert {error.code for error in branches(HallporterError)} <= STATUS.keys()


def assert_problem(answer: httpx.Response, status: int, code: str) -> None:
    body = answer.json()
    assert answer.status_code == status
    assert body["success"] is False
    assert body["error"] == code
    assert body["message"]


async def test_an_unknown_address_is_not_found(front: Front) -> None:
    async with front.client() as operator:
        for path in ("/nothing", "/api/nothing", "/api/groups/", "/docs/"):
            assert_problem(await operator.get(path), 404, "NOT_FOUND")


async def test_a_wrong_method_is_told(front: Front) -> None:
    async with front.client() as operator:
        assert_problem(await operator.put("/api/groups"), 405, "METHOD_NOT_ALLOWED")


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Basic aGk6aG8=", "Bearer hp_wrong", f"Token {ADMIN}"],
)
async def test_without_a_known_token_nothing_under_api_is_there(front: Front, header: str) -> None:
    await front.register()
    async with front.client("") as stranger:
        for path in (MESSAGES, "/api/groups", "/api/status", "/api/nothing"):
            answer = await stranger.get(path, headers={"authorization": header})
            assert_problem(answer, 401, "UNAUTHORIZED")
            assert answer.headers["www-authenticate"] == "Bearer"


async def test_the_scheme_may_be_written_in_any_case(front: Front) -> None:
    async with front.client("") as operator:
        headers = {"authorization": f"bearer {ADMIN}"}
        assert (await operator.get("/api/groups", headers=headers)).status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/groups"),
        ("POST", "/api/groups"),
        ("PUT", "/api/groups"),
        ("GET", "/api/groups/main"),
        ("GET", "/api/tokens"),
        ("DELETE", "/api/tokens/tok_1"),
        ("GET", "/api/status"),
        ("GET", "/api/channels"),
        ("GET", "/api/messages/m_1/fate"),
    ],
)
async def test_what_is_the_operators_looks_unknown_to_a_consumer(
    front: Front, method: str, path: str
) -> None:
    await front.register()
    async with front.client(await front.token()) as consumer:
        hidden = await consumer.request(method, path, content=b"{not json")
        unknown = await consumer.request(method, "/api/nothing", content=b"{not json")
    assert_problem(hidden, 404, "NOT_FOUND")
    assert hidden.content == unknown.content
    assert hidden.headers == unknown.headers


async def test_an_unknown_address_looks_the_same_to_everyone(front: Front) -> None:
    async with front.client(await front.token()) as consumer, front.client() as operator:
        theirs = await consumer.get("/api/nothing")
        ours = await operator.get("/api/nothing")
    assert theirs.content == ours.content


async def test_a_revoked_token_opens_nothing_any_more(front: Front) -> None:
    await front.register()
    secret = await front.token()
    async with front.client(secret) as consumer:
        assert (await consumer.get(MESSAGES)).status_code == 200
        (token,) = await front.desk.tokens.all()
        await front.desk.tokens.revoke(token.id)
        assert_problem(await consumer.get(MESSAGES), 401, "UNAUTHORIZED")


JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"{not json", "not JSON"),
        (b"[" * 100_000, "JSON that can be read"),
        (b'{"text": ' + b"[" * 5000 + b"]" * 5000 + b"}", ""),
        (b'{"text": ' + b"[" * 500 + b"]" * 500 + b"}", "text"),
        (b"\xff\xfe", ""),
        (b"[]", "body"),
        (b"null", ""),
        (b"", ""),
        (b'{"text": 5}', "text"),
        (b'{"text": null}', "text"),
        (b"{}", "text"),
    ],
)
async def test_a_body_that_is_not_what_it_should_be_is_refused(
    front: Front, body: bytes, told: str
) -> None:
    await front.register()
    async with front.client() as operator:
        answer = await operator.post(MESSAGES, content=body, headers=JSON)
    assert_problem(answer, 400, "INVALID_REQUEST")
    assert told in answer.json()["message"]


async def test_a_body_without_its_kind_is_told_how_to_send_it(front: Front) -> None:
    await front.register()
    async with front.client() as operator:
        answer = await operator.post(MESSAGES, content=b'{"text": "hello"}')
    assert_problem(answer, 400, "INVALID_REQUEST")
    assert "Content-Type: application/json" in answer.json()["message"]


async def test_a_body_over_a_mebibyte_is_refused(front: Front) -> None:
    await front.register()
    async with front.client() as operator:
        most = b'{"text": "hello"}'.ljust(1024 * 1024)
        fits = await operator.post(MESSAGES, content=most, headers=JSON)
        answer = await operator.post(MESSAGES, content=most + b" ", headers=JSON)
    assert fits.status_code == 202
    assert_problem(answer, 413, "TOO_LARGE")


async def test_a_body_that_hides_its_length_is_counted(front: Front) -> None:
    await front.register()

    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"text": "hello"}'
        for _ in range(17):
            yield b" " * 65536

    async with front.client() as operator:
        answer = await operator.post(MESSAGES, content=pieces(), headers=JSON)
    assert_problem(answer, 413, "TOO_LARGE")


async def test_what_nobody_expected_is_told_by_a_case_number_only(front: Front) -> None:
    @front.app.get("/broken")
    async def broken() -> None:
        raise RuntimeError("a secret")

    async with front.client() as operator:
        with structlog.testing.capture_logs() as logs:
            answer = await operator.get("/broken")
    assert_problem(answer, 500, "INTERNAL_ERROR")
    assert "secret" not in answer.text
    (line,) = [entry for entry in logs if entry["event"] == "request.failed"]
    assert line["case"] in answer.json()["message"]
