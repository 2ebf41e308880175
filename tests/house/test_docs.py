"""The pages say what is so: their links, names, settings, endpoints and commands exist."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from fastapi.routing import APIRoute
from typer.main import get_command

from hallporter.api import chats, doctor, files, forgetting, groups, house, notices, tasks, tokens
from hallporter.api import imports as import_endpoints
from hallporter.api import links as link_endpoints
from hallporter.cli.main import app
from hallporter.settings.keys import ALIASES, GROUP, TABLES, dotted

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
PICTURES = sorted((DOCS / "pictures").glob("*.svg"))

# Whoever reads a page is sent nowhere else.
HOSTS = {"127.0.0.1", "keepachangelog.com", "semver.org"}
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]*(?:\[[^\]]*\][^\]]*)?\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
CODE = re.compile(r"`([^`\n]+)`")
ROW = re.compile(r"^\| `([^`]+)` \| `([^`]+)` \|", re.MULTILINE)
MODULE = re.compile(r"hallporter(?:_wire|_runner)?(?:\.[a-z_]+)+")
PEOPLES_FOLDER = re.compile(r"(?<![\w.])/(?:root|Users|home/(?!node\b))[\w./-]*")
NO_MODULES = (".toml", ".db", ".log", ".svg")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def prose(page: Path) -> str:
    """Without what stands in fences: examples may name what is not ours."""
    return FENCE.sub("", page.read_text("utf-8"))


def anchors(page: Path) -> set[str]:
    """As they are made of headings: small letters, no punctuation, hyphens for spaces."""
    headings = HEADING.findall(prose(page))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> list[str]:
    return [link for link in LINK.findall(prose(page)) if "://" not in link]


def is_there(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    return target.exists() and (not anchor or anchor in anchors(target))


def is_module(name: str) -> bool:
    parts = Path(ROOT / "src", *name.split("."))
    return parts.is_dir() or parts.with_suffix(".py").exists()


def is_source(name: str) -> bool:
    """A file of ours, as pages shorten it: from the root, the packages, or the rooms."""
    places = (ROOT, ROOT / "src", ROOT / "src" / "hallporter", ROOT / "src/hallporter/settings")
    return any((place / name).exists() for place in places)


def section(page: Path, title: str) -> str:
    _, _, rest = page.read_text("utf-8").partition(f"\n## {title}\n")
    return rest.partition("\n## ")[0]


def rules_on(page: Path) -> dict[str, str]:
    """The text of each rule, up to the next one or the next heading."""
    found = re.split(r"^\*\*(R\d+)\.|^## ", page.read_text("utf-8"), flags=re.MULTILINE)
    return {rule: text for rule, text in zip(found[1::2], found[2::2], strict=True) if rule}


def every_test() -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [
        node
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def rules_of(test: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    marks = " ".join(map(ast.unparse, test.decorator_list))
    return set(re.findall(r"'(R\d+)'", " ".join(re.findall(r"mark\.rule\(.*?\)", marks))))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    assert [link for link in links(page) if not is_there(page, link)] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_source_file_and_module_that_is_named_exists(page: Path) -> None:
    words = CODE.findall(prose(page))
    # What people save in their home is theirs to name.
    files = [word for word in words if re.fullmatch(r"(?!home/)\w[\w./]*\.py", word)]
    modules = [word for word in words if MODULE.fullmatch(word) and not word.endswith(NO_MODULES)]
    missing = [file for file in files if not is_source(file)]
    assert missing + [module for module in modules if not is_module(module)] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_test_that_is_named_exists(page: Path) -> None:
    named = {word for word in CODE.findall(prose(page)) if word.startswith("test_")}
    assert named - {test.name for test in every_test()} == set()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_page_names_a_machines_folders_or_strange_hosts(page: Path) -> None:
    text = page.read_text("utf-8")
    hosts = {host.partition(":")[0] for host in re.findall(r"https?://([\w.:-]+)", text)}
    assert hosts - HOSTS == set()
    assert str(ROOT) not in text
    assert PEOPLES_FOLDER.findall(text) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_make_command_is_in_the_makefile(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text("utf-8"), re.MULTILINE)
    assert set(named) - targets == set()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_hallporter_command_exists(page: Path) -> None:
    known = set(get_command(app).commands)  # type: ignore[attr-defined]
    calls = r"(?:`|/)hallporter(?: --home \w+)? ([a-z]+)"
    assert set(re.findall(calls, page.read_text("utf-8"))) - known == set()


@pytest.mark.parametrize(
    ("table", "title"),
    [
        ("host", "`[host]`"),
        ("store", "`[store]`"),
        ("logs", "`[logs]`"),
        ("retention", "`[retention]`"),
        ("agent", "`[agent]` and `[groups.FOLDER.agent]`"),
    ],
)
def test_the_settings_page_has_every_key_with_its_default(table: str, title: str) -> None:
    told = dict(ROW.findall(section(DOCS / "settings.md", title)))
    keys = TABLES[table]
    assert set(told) == set(keys)
    for name, default in told.items():
        value = tomllib.loads(f"value = {default}")["value"]
        assert keys[name].kind.read(value) == keys[name].default, name


def test_the_settings_page_has_every_key_of_a_group() -> None:
    table = section(DOCS / "settings.md", "`[groups.FOLDER]`")
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(GROUP)


def test_the_settings_page_says_what_has_no_effect_yet() -> None:
    page = (DOCS / "settings.md").read_text("utf-8")
    told = re.findall(r"^\| `(\w+)` \|.*No effect yet", page, re.MULTILINE)
    assert set(told) == {name for keys in TABLES.values() for name in keys if keys[name].moot}


def test_the_settings_page_has_every_variable_and_what_it_means() -> None:
    rows = re.findall(
        r"^\| `([A-Z_]+)` \| `([a-z_.]+)`", section(DOCS / "settings.md", "Variables"), re.MULTILINE
    )
    assert dict(rows) == {name: dotted(alias.path) for name, alias in ALIASES.items()}


def test_the_api_page_has_every_endpoint() -> None:
    routers = (
        chats.router,
        files.router,
        groups.router,
        tasks.router,
        tokens.router,
        import_endpoints.router,
        link_endpoints.router,
        doctor.router,
        notices.router,
        forgetting.router,
        house.router,
        house.open_router,
    )
    served = {
        f"{method} {route.path_format}"
        for router in routers
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    } | {"GET /docs", "GET /openapi.json"}
    told = re.findall(r"`([A-Z]+ /[^`]*)`", section(DOCS / "api.md", "Endpoints"))
    assert set(told) == served


def test_the_rules_page_names_tests_that_name_the_rule() -> None:
    proven = {(test.name, rule) for test in every_test() for rule in rules_of(test)}
    page = rules_on(DOCS / "rules-of-a-turn.md")
    assert list(page) == [f"R{number}" for number in range(1, 17)]
    told = {(test, rule) for rule, text in page.items() for test in CODE.findall(text)}
    assert {pair for pair in told if pair[0].startswith("test_")} - proven == set()


def test_every_decision_is_in_the_index() -> None:
    decisions = {path.name for path in (DOCS / "adr").glob("0*.md")}
    assert set(links(DOCS / "adr" / "README.md")) == decisions


@pytest.mark.parametrize("picture", PICTURES, ids=name_of)
def test_a_picture_can_be_read_and_says_what_it_shows(picture: Path) -> None:
    title = ET.parse(picture).getroot().find("{http://www.w3.org/2000/svg}title")
    assert title is not None
    assert title.text


def test_a_link_that_leads_nowhere_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n\n[here](#a-page), [there](#b), [away](gone.md), [out](http://x/y)\n"
    )
    assert [link for link in links(page) if not is_there(page, link)] == ["#b", "gone.md"]
