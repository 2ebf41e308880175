from __future__ import annotations

import re
from datetime import timedelta

import pytest

from tests.api.front import ADMIN, MAIN
from tests.web.hall import HTML, Hall, csrf_in, log_in
from tests.web.test_chat import following


async def test_a_one_time_link_opens_the_page(hall: Hall) -> None:
    async with hall.stranger() as client:
        answer = await client.get(await hall.link())
        assert answer.status_code == 200
        assert 'content="0; url=/"' in answer.text
        assert (await client.get("/")).status_code == 200


async def test_a_one_time_link_works_once(hall: Hall) -> None:
    link = await hall.link()
    async with hall.stranger() as first, hall.stranger() as second:
        assert (await first.get(link)).status_code == 200
        answer = await second.get(link)
        assert answer.status_code == 401
        assert "works once" in answer.text
        assert "hp_session" not in second.cookies


async def test_a_one_time_link_lasts_five_minutes(hall: Hall) -> None:
    young, old = await hall.link(), await hall.link()
    async with hall.stranger() as client:
        hall.front.clock.advance(timedelta(minutes=5, seconds=-1))
        assert (await client.get(young)).status_code == 200
        hall.front.clock.advance(timedelta(seconds=1))
        assert (await client.get(old)).status_code == 401


async def test_looking_ahead_does_not_use_a_link_up(hall: Hall) -> None:
    link = await hall.link()
    async with hall.stranger() as client:
        assert (await client.head(link)).status_code == 204
        ahead = await client.get(link, headers={"Sec-Purpose": "prefetch;prerender"})
        assert ahead.status_code == 204
        assert (await client.get(link)).status_code == 200


@pytest.mark.parametrize("kind", ["admin", "operator"])
async def test_an_operators_token_opens_the_page(hall: Hall, kind: str) -> None:
    token = ADMIN if kind == "admin" else await hall.front.token("studio_operator", chat=None)
    async with hall.stranger() as client:
        assert (await log_in(client, token)).status_code == 200
        assert (await client.get("/")).status_code == 200


async def test_a_consumers_token_does_not(hall: Hall) -> None:
    async with hall.stranger() as client:
        answer = await log_in(client, await hall.front.token())
        assert answer.status_code == 401
        assert "for operators" in answer.text


async def test_a_session_ends_with_the_token_that_opened_it(hall: Hall) -> None:
    desk = hall.front.desk
    made = await desk.tokens.create(role="studio_operator", subject="alice")
    async with hall.stranger() as client:
        await log_in(client, made.secret)
        await desk.tokens.revoke(made.token.id)
        assert (await client.get("/")).status_code == 303
        assert await desk.sessions.all() == []


async def test_the_cookie_is_out_of_reach_of_scripts_and_strangers(hall: Hall) -> None:
    async with hall.stranger() as client:
        cookie = (await client.get(await hall.link())).headers["set-cookie"]
    assert cookie.startswith("hp_session=")
    parts = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= parts
    assert "secure" not in parts
    assert not any(part.startswith("domain") for part in parts)


async def test_under_tls_the_cookie_is_secure_and_bound_to_the_host(hall: Hall) -> None:
    async with hall.stranger("https://house") as client:
        cookie = (await client.get(await hall.link())).headers["set-cookie"]
        assert (await client.get("/")).status_code == 200
    assert cookie.startswith("__Host-hp_session=")
    assert "secure" in cookie.lower()


async def test_a_secret_that_was_planted_before_is_worth_nothing(hall: Hall) -> None:
    async with hall.stranger() as client:
        client.cookies.set("hp_session", "planted")
        answer = await client.get(await hall.link())
        assert "planted" not in answer.headers["set-cookie"]
    async with hall.stranger() as attacker:
        attacker.cookies.set("hp_session", "planted")
        assert (await attacker.get("/")).headers["location"] == "/login"


async def test_each_log_in_has_a_fresh_secret_and_it_is_stored_hashed(hall: Hall) -> None:
    secrets = set()
    for _ in range(2):
        async with hall.browser() as client:
            secrets.add(client.cookies["hp_session"])
    assert len(secrets) == 2
    stored = await hall.front.desk.sessions.all()
    assert not secrets & {session.digest for session in stored}


async def test_ten_failures_close_the_door_to_an_address(hall: Hall) -> None:
    async with hall.stranger() as client, hall.stranger(address="10.0.0.2") as other:
        for _ in range(10):
            assert (await log_in(client, "hp_wrong")).status_code == 401
        answer = await log_in(client, ADMIN)
        assert answer.status_code == 429
        assert answer.headers["retry-after"] == "900"
        assert (await client.get(await hall.link())).status_code == 200
        assert (await log_in(other, ADMIN)).status_code == 200

        hall.front.clock.advance(timedelta(minutes=15))
        assert (await log_in(client, ADMIN)).status_code == 200


async def test_a_hundred_failures_close_it_to_all(hall: Hall) -> None:
    for number in range(100):
        async with hall.stranger(address=f"10.0.1.{number}") as client:
            assert (await log_in(client, "hp_wrong")).status_code == 401
    async with hall.stranger(address="10.0.2.1") as client:
        assert (await log_in(client, ADMIN)).status_code == 429


async def test_a_browser_that_stays_away_for_thirty_days_is_out(hall: Hall) -> None:
    async with hall.browser() as client:
        hall.front.clock.advance(timedelta(days=29))
        assert (await client.get("/")).status_code == 200
        hall.front.clock.advance(timedelta(days=29))
        assert (await client.get("/")).status_code == 200
        hall.front.clock.advance(timedelta(days=30))
        assert (await client.get("/")).status_code == 303


@pytest.mark.parametrize("path", ["/", "/sessions", "/notices", "/chats/web:main/earlier?before=9"])
async def test_the_cookie_lasts_from_its_last_use(hall: Hall, path: str) -> None:
    async with hall.browser() as client:
        secret = client.cookies["hp_session"]
        cookie = (await client.get(path)).headers["set-cookie"]
    assert cookie.startswith(f"hp_session={secret};")
    assert f"Max-Age={30 * 24 * 3600};" in cookie
    assert "httponly" in cookie.lower()
    assert "samesite=strict" in cookie.lower()


async def test_a_cookie_that_opens_nothing_is_not_renewed(hall: Hall) -> None:
    async with hall.browser() as client:
        (session,) = await hall.front.desk.sessions.all()
        await hall.front.desk.sessions.revoke(session.id)
        assert "set-cookie" not in (await client.get("/")).headers


async def test_sessions_are_listed_and_a_revoked_one_is_out_at_once(hall: Hall) -> None:
    async with hall.browser() as mine, hall.browser() as theirs:
        page = await mine.get("/sessions")
        assert page.text.count("/revoke") == 2
        assert page.text.count("this browser") == 1
        own = (await theirs.get("/sessions")).text
        ids = [session.id for session in await hall.front.desk.sessions.all()]
        other = next(one for one in ids if f"/sessions/{one}/revoke" in own and _is_own(own, one))

        answer = await mine.post(f"/sessions/{other}/revoke", data={"csrf": csrf_in(page)})
        assert answer.headers["location"] == "/sessions"
        assert (await theirs.get("/")).headers["location"] == "/login"
        assert (await mine.get("/")).status_code == 200


def _is_own(page: str, session: str) -> bool:
    before = page.split(f"/sessions/{session}/revoke", maxsplit=1)[0]
    return "this browser" in before.rsplit("<li>", 1)[1]


async def test_logging_out_ends_the_session(hall: Hall) -> None:
    async with hall.browser() as client:
        secret = client.cookies["hp_session"]
        csrf = csrf_in(await client.get("/sessions"))
        answer = await client.post("/logout", data={"csrf": csrf})
        assert answer.headers["location"] == "/login"
        client.cookies.set("hp_session", secret, domain="house.local", path="/")
        assert (await client.get("/")).headers["location"] == "/login"
    assert await hall.front.desk.sessions.all() == []


async def test_revoking_ones_own_session_is_logging_out(hall: Hall) -> None:
    async with hall.browser() as client:
        (session,) = await hall.front.desk.sessions.all()
        csrf = csrf_in(await client.get("/sessions"))
        answer = await client.post(f"/sessions/{session.id}/revoke", data={"csrf": csrf})
        assert answer.headers["location"] == "/login"
        late = await client.post("/logout", data={"csrf": csrf})
        assert late.status_code == 401
        assert "log in again" in late.text


async def test_the_open_page_of_a_revoked_session_hears_nothing_more(hall: Hall) -> None:
    async with following(hall, after=0) as stream:
        await hall.front.say("hello")
        assert await stream.next() is not None
        for session in await hall.front.desk.sessions.all():
            await hall.front.desk.sessions.revoke(session.id)
        await hall.front.say("a secret")
        assert await stream.next() is None


async def test_an_unknown_session_cannot_be_revoked(hall: Hall) -> None:
    async with hall.browser() as client:
        csrf = csrf_in(await client.get("/sessions"))
        answer = await client.post("/sessions/s_none/revoke", data={"csrf": csrf})
        assert answer.status_code == 404


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/logout", {}),
        ("/sessions/s_1/revoke", {}),
        ("/chats/web:main/say", {"text": "hello"}),
    ],
)
@pytest.mark.parametrize("csrf", ["", "0" * 64, "é"])
async def test_a_form_without_its_token_changes_nothing(
    hall: Hall, path: str, data: dict[str, str], csrf: str
) -> None:
    async with hall.browser() as client:
        answer = await client.post(path, data={**data, "csrf": csrf})
        assert answer.status_code == 403
        assert (await client.get("/")).status_code == 200
    assert len(await hall.front.desk.sessions.all()) == 1
    page = await hall.front.desk.story.page(MAIN, after=None, limit=5)
    assert page.messages == []


async def test_the_token_of_another_session_does_not_fit(hall: Hall) -> None:
    async with hall.browser() as mine, hall.browser() as theirs:
        csrf = csrf_in(await theirs.get("/sessions"))
        assert (await mine.post("/logout", data={"csrf": csrf})).status_code == 403


async def test_the_log_in_form_has_a_token_too(hall: Hall) -> None:
    async with hall.stranger() as client:
        answer = await client.post("/login", data={"token": ADMIN, "csrf": "0" * 64})
        assert answer.status_code == 403
        assert "hp_session" not in client.cookies


async def test_another_sites_form_is_refused_even_with_the_token(hall: Hall) -> None:
    async with hall.browser() as client:
        csrf = csrf_in(await client.get("/sessions"))
        headers = {"Sec-Fetch-Site": "cross-site"}
        answer = await client.post("/logout", data={"csrf": csrf}, headers=headers)
        assert answer.status_code == 403


@pytest.mark.parametrize("body", ["text=%ff&csrf=x", "&".join(f"a{n}=1" for n in range(30))])
async def test_a_form_that_cannot_be_read_is_refused(hall: Hall, body: str) -> None:
    async with hall.browser() as client:
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = await client.post("/logout", content=body, headers=kind)
        assert answer.status_code == 400


async def test_what_is_no_form_is_refused(hall: Hall) -> None:
    async with hall.browser() as client:
        assert (await client.post("/logout", json={"csrf": "x"})).status_code == 400


@pytest.mark.parametrize(
    "path",
    ["/login", "/", "/sessions", "/enter/wrong", "/static/page.css", "/static/none", "/fates/x"],
)
async def test_every_page_forbids_scripts_frames_and_sniffing(hall: Hall, path: str) -> None:
    async with hall.browser() as client:
        headers = (await client.get(path)).headers
    policy = dict(
        part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["form-action"] == "'self'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"


async def test_a_page_is_kept_by_no_cache_and_a_static_file_by_every(hall: Hall) -> None:
    async with hall.browser() as client:
        assert (await client.get("/")).headers["cache-control"] == "no-store"
        page = (await client.get("/sessions")).text
        (style,) = re.findall(r'href="(/static/page.css\?v=\w+)"', page)
        assert "immutable" in (await client.get(style)).headers["cache-control"]
        for other in ("/static/page.css", "/static/page.css?v=of-yesterday"):
            assert (await client.get(other)).headers["cache-control"] == "no-cache"


async def test_every_module_that_a_script_asks_for_is_named_by_its_content(hall: Hall) -> None:
    asked = set()
    async with hall.browser() as client:
        for path in ("/", "/sessions"):
            asked |= set(re.findall(r'<script[^>]* src="([^"]+)"', (await client.get(path)).text))
        for script in list(asked):
            text = (await client.get(script)).text
            asked |= {f"/static/{name}" for name in re.findall(r'from "\./([^"]+)"', text)}
        assert any("times.js" in address for address in asked)
        for address in asked:
            assert "immutable" in (await client.get(address)).headers["cache-control"]
    assert len(asked) == len({address.partition("?")[0] for address in asked})


@pytest.mark.parametrize(
    "path",
    ["/chats/web:main/events", "/chats/web:main/earlier?before=9", "/fates/m_1", "/sessions"],
)
async def test_nothing_is_shown_to_a_stranger(hall: Hall, path: str) -> None:
    async with hall.stranger() as client:
        answer = await client.get(path, headers={"Accept": "application/json"})
        assert answer.status_code == 401
        assert answer.json()["error"] == "UNAUTHORIZED"
        assert (await client.get(path, headers={"Accept": HTML})).headers["location"] == "/login"


async def test_a_session_cookie_opens_no_api(hall: Hall) -> None:
    async with hall.browser() as client:
        assert (await client.get("/api/status")).status_code == 401


async def test_the_api_makes_links_for_operators_only(hall: Hall) -> None:
    async with hall.front.client() as operator:
        made = await operator.post("/api/links")
        assert made.status_code == 201
        data = made.json()["data"]
    async with hall.front.client(await hall.front.token()) as consumer:
        assert (await consumer.post("/api/links")).status_code == 404
    async with hall.stranger() as client:
        assert (await client.get(data["path"])).status_code == 200


async def test_wrong_links_lock_nobody_out(hall: Hall) -> None:
    async with hall.stranger() as client:
        for _ in range(150):
            assert (await client.get("/enter/wrong")).status_code == 401
        assert (await log_in(client, ADMIN)).status_code == 200
