"""The list of the documents' rules and the tests that prove them keep each other honest."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
STATES = ("done", "todo", "ours")
KEYS = {"id", "documents", "says", "state"}
MORE_KEYS = {"why", "open"}
ID = re.compile(r"[a-z0-9]+(\.[a-z0-9-]+)+")
DOCUMENT = re.compile(r"00[0-4] \S.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    id: str
    documents: tuple[str, ...] = ("002 step 1",)
    says: str = "A rule."
    state: str = "todo"
    why: str | None = None
    open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    rule: str
    place: str


def read_rules(text: str) -> list[Rule]:
    rules = []
    for table in tomllib.loads(text)["rule"]:
        if wrong := set(table) - MORE_KEYS ^ KEYS:
            raise ValueError(f"rule {table.get('id')!r}: missing or unknown {sorted(wrong)}")
        if table.get("open", True) is not True:
            raise ValueError(f"rule {table['id']!r}: `open` is true or not there")
        rules.append(Rule(**{**table, "documents": tuple(table["documents"])}))
    return rules


def find_markers(source: str, *, place: str) -> list[Marker]:
    """Ids must be literals: an expression is reported as its own text, which no rule has."""
    return [
        Marker(rule=rule, place=f"{place}:{mark.lineno}")
        for node in ast.walk(ast.parse(source))
        for mark in marks_on(node)
        if isinstance(mark, ast.Call) and ast.unparse(mark.func).endswith("mark.requirement")
        for rule in [literal(argument) for argument in mark.args] or [""]
    ]


def marks_on(node: ast.AST) -> Iterator[ast.expr]:
    """Marks count where pytest applies them to a test; a call elsewhere proves nothing."""
    match node:
        case ast.ClassDef(decorator_list=marks):
            yield from marks
        case (
            ast.FunctionDef(name=name, decorator_list=marks)
            | ast.AsyncFunctionDef(name=name, decorator_list=marks)
        ) if name.startswith("test"):
            yield from marks
        case (
            ast.Assign(targets=[ast.Name(id="pytestmark")], value=ast.expr() as value)
            | ast.AnnAssign(target=ast.Name(id="pytestmark"), value=ast.expr() as value)
        ):
            yield from one_or_several(value)
        case ast.Call(func=ast.Attribute(attr="param"), keywords=keywords):
            for keyword in keywords:
                if keyword.arg == "marks":
                    yield from one_or_several(keyword.value)


def one_or_several(value: ast.expr) -> list[ast.expr]:
    return value.elts if isinstance(value, ast.List | ast.Tuple) else [value]


def literal(argument: ast.expr) -> str:
    match argument:
        case ast.Constant(value=str(text)):
            return text
    return ast.unparse(argument)


def repeated_ids(rules: Sequence[Rule]) -> list[str]:
    counts = Counter(rule.id for rule in rules)
    return [f"{id}: stands {n} times, merge or rename" for id, n in counts.items() if n > 1]


def misshapen_ids(rules: Sequence[Rule]) -> list[str]:
    return [
        f"{rule.id!r}: write it as words.with-hyphens.behind-dots, in small letters"
        for rule in rules
        if not ID.fullmatch(rule.id)
    ]


def vague_documents(rules: Sequence[Rule]) -> list[str]:
    nowhere = [
        f"{rule.id}: name the document it comes from" for rule in rules if not rule.documents
    ]
    return nowhere + [
        f"{rule.id}: {document!r} should be 000 to 004, a space, and the section"
        for rule in rules
        for document in rule.documents
        if not DOCUMENT.fullmatch(document)
    ]


def empty_sentences(rules: Sequence[Rule]) -> list[str]:
    return [f"{rule.id}: say the rule in one sentence" for rule in rules if not rule.says.strip()]


def unknown_states(rules: Sequence[Rule]) -> list[str]:
    return [
        f"{rule.id}: state {rule.state!r} should be one of {', '.join(STATES)}"
        for rule in rules
        if rule.state not in STATES
    ]


def misplaced_reasons(rules: Sequence[Rule]) -> list[str]:
    missing = [
        f"{rule.id}: is ours, so say in `why` how and why it differs"
        for rule in rules
        if rule.state == "ours" and not (rule.why or "").strip()
    ]
    return missing + [
        f"{rule.id}: has a `why`, so its state should be ours; else drop the `why`"
        for rule in rules
        if rule.state != "ours" and rule.why is not None
    ]


def done_without_test(rules: Sequence[Rule], markers: Sequence[Marker]) -> list[str]:
    proven = {marker.rule for marker in markers}
    return [
        f'{rule.id}: is done but has no test; mark one with @pytest.mark.requirement("{rule.id}")'
        " or set it back to todo"
        for rule in rules
        if rule.state == "done" and rule.id not in proven
    ]


def todo_with_test(rules: Sequence[Rule], markers: Sequence[Marker]) -> list[str]:
    places = {marker.rule: marker.place for marker in markers}
    return [
        f"{rule.id}: is todo but has a test at {places[rule.id]}; set it to done"
        for rule in rules
        if rule.state == "todo" and rule.id in places
    ]


def ours_without_test(rules: Sequence[Rule], markers: Sequence[Marker]) -> list[str]:
    proven = {marker.rule for marker in markers}
    return [
        f"{rule.id}: is ours but has no test; mark one with"
        f' @pytest.mark.requirement("{rule.id}") or say `open = true`'
        for rule in rules
        if rule.state == "ours" and not rule.open and rule.id not in proven
    ]


def open_without_need(rules: Sequence[Rule], markers: Sequence[Marker]) -> list[str]:
    places = {marker.rule: marker.place for marker in markers}
    elsewhere = [
        f"{rule.id}: is {rule.state}, and only ours can be open; drop the `open`"
        for rule in rules
        if rule.open and rule.state != "ours"
    ]
    return elsewhere + [
        f"{rule.id}: is open but has a test at {places[rule.id]}; drop the `open`"
        for rule in rules
        if rule.open and rule.state == "ours" and rule.id in places
    ]


def markers_of_no_rule(rules: Sequence[Rule], markers: Sequence[Marker]) -> list[str]:
    known = {rule.id for rule in rules}
    return [
        f"{marker.place}: no rule {marker.rule!r}; take an id of tests/requirements.toml,"
        " written as a plain string"
        for marker in markers
        if marker.rule not in known
    ]


@pytest.fixture(scope="module")
def rules() -> list[Rule]:
    return read_rules((TESTS / "requirements.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def markers() -> list[Marker]:
    return [
        marker
        for path in sorted(TESTS.rglob("*.py"))
        for marker in find_markers(
            path.read_text("utf-8"), place=path.relative_to(TESTS.parent).as_posix()
        )
    ]


def no_complaints(complaints: list[str]) -> None:
    assert not complaints, "\n".join(["", *complaints])


def test_ids_are_unique(rules: list[Rule]) -> None:
    no_complaints(repeated_ids(rules))


def test_ids_have_one_shape(rules: list[Rule]) -> None:
    no_complaints(misshapen_ids(rules))


def test_every_rule_names_document_and_section(rules: list[Rule]) -> None:
    no_complaints(vague_documents(rules))


def test_every_rule_is_a_sentence(rules: list[Rule]) -> None:
    no_complaints(empty_sentences(rules))


def test_every_state_is_known(rules: list[Rule]) -> None:
    no_complaints(unknown_states(rules))


def test_where_we_differ_there_is_a_reason(rules: list[Rule]) -> None:
    no_complaints(misplaced_reasons(rules))


def test_every_done_rule_has_a_test(rules: list[Rule], markers: list[Marker]) -> None:
    no_complaints(done_without_test(rules, markers))


def test_no_todo_rule_has_a_test(rules: list[Rule], markers: list[Marker]) -> None:
    no_complaints(todo_with_test(rules, markers))


def test_where_we_differ_there_is_a_test_or_it_is_open(
    rules: list[Rule], markers: list[Marker]
) -> None:
    no_complaints(ours_without_test(rules, markers))


def test_what_is_open_is_ours_and_has_no_test(rules: list[Rule], markers: list[Marker]) -> None:
    no_complaints(open_without_need(rules, markers))


def test_every_marker_names_a_rule(rules: list[Rule], markers: list[Marker]) -> None:
    no_complaints(markers_of_no_rule(rules, markers))


def test_a_repeated_id_is_noticed() -> None:
    assert repeated_ids([Rule(id="a.b"), Rule(id="a.b"), Rule(id="a.c")]) == [
        "a.b: stands 2 times, merge or rename"
    ]


@pytest.mark.parametrize("id", ["", "word", "Ipc.message", "ipc.", "ipc.own_chat", "i-pc.message"])
def test_a_misshapen_id_is_noticed(id: str) -> None:
    assert len(misshapen_ids([Rule(id=id), Rule(id="ipc.message.own-chat")])) == 1


@pytest.mark.parametrize("document", ["", "002", "002 ", "005 step 1", "step 1", "2 step 1"])
def test_a_vague_document_is_noticed(document: str) -> None:
    assert len(vague_documents([Rule(id="a.b", documents=("001 4.2", document))])) == 1


def test_a_rule_without_document_is_noticed() -> None:
    assert len(vague_documents([Rule(id="a.b", documents=())])) == 1


def test_an_empty_sentence_is_noticed() -> None:
    assert len(empty_sentences([Rule(id="a.b", says=" "), Rule(id="a.c")])) == 1


def test_an_unknown_state_is_noticed() -> None:
    known = [Rule(id=f"a.{state}", state=state) for state in STATES]
    assert len(unknown_states([*known, Rule(id="a.b", state="later")])) == 1


def test_a_missing_reason_and_a_reason_too_many_are_noticed() -> None:
    sound = [Rule(id="a.b"), Rule(id="a.c", state="ours", why="Because.")]
    faulty = [
        Rule(id="a.d", state="ours"),
        Rule(id="a.e", state="ours", why=" "),
        Rule(id="a.f", state="done", why="Because."),
    ]
    assert misplaced_reasons(sound) == []
    assert len(misplaced_reasons([*sound, *faulty])) == 3


def test_a_done_rule_without_test_is_noticed() -> None:
    rules = [
        Rule(id="a.b", state="done"),
        Rule(id="a.c", state="done"),
        Rule(id="a.d"),
        Rule(id="a.e", state="ours", why="Because."),
    ]
    complaints = done_without_test(rules, [Marker(rule="a.c", place="tests/test_x.py:1")])
    assert [complaint.split(":")[0] for complaint in complaints] == ["a.b"]


def test_a_todo_rule_with_test_is_noticed() -> None:
    rules = [Rule(id="a.b"), Rule(id="a.c"), Rule(id="a.d", state="ours", why="Because.")]
    markers = [Marker(rule=id, place="tests/test_x.py:1") for id in ("a.b", "a.d")]
    assert todo_with_test(rules, markers) == [
        "a.b: is todo but has a test at tests/test_x.py:1; set it to done"
    ]


def test_ours_without_test_is_noticed_unless_it_is_open() -> None:
    rules = [
        Rule(id="a.b", state="ours", why="Because."),
        Rule(id="a.c", state="ours", why="Because.", open=True),
        Rule(id="a.d", state="ours", why="Because."),
        Rule(id="a.e"),
    ]
    complaints = ours_without_test(rules, [Marker(rule="a.d", place="tests/test_x.py:1")])
    assert [complaint.split(":")[0] for complaint in complaints] == ["a.b"]


def test_an_open_rule_with_test_or_that_is_not_ours_is_noticed() -> None:
    rules = [
        Rule(id="a.b", state="ours", why="Because.", open=True),
        Rule(id="a.c", state="ours", why="Because.", open=True),
        Rule(id="a.d", open=True),
        Rule(id="a.e", state="ours", why="Because."),
    ]
    markers = [Marker(rule=id, place="tests/test_x.py:1") for id in ("a.c", "a.e")]
    assert open_without_need(rules, markers) == [
        "a.d: is todo, and only ours can be open; drop the `open`",
        "a.c: is open but has a test at tests/test_x.py:1; drop the `open`",
    ]


def test_a_marker_of_no_rule_is_noticed() -> None:
    markers = [Marker(rule=id, place=f"tests/test_{id}.py:1") for id in ("a.b", "a.x")]
    complaints = markers_of_no_rule([Rule(id="a.b")], markers)
    assert [complaint.split(":")[0] for complaint in complaints] == ["tests/test_a.x.py"]


@pytest.mark.parametrize(
    "table",
    [
        'id = "a.b"\nsays = "x"\nstate = "todo"',
        'id = "a.b"\ndocuments = ["002 step 1"]\nsays = "x"\nstate = "todo"\nreason = "x"',
    ],
    ids=["missing", "unknown"],
)
def test_a_rule_with_a_missing_or_unknown_key_is_refused(table: str) -> None:
    with pytest.raises(ValueError, match=r"rule 'a\.b': missing or unknown"):
        read_rules(f"[[rule]]\n{table}")


@pytest.mark.parametrize("value", ["false", '"yes"', "1"])
def test_an_open_that_is_not_true_is_refused(value: str) -> None:
    table = 'id = "a.b"\ndocuments = ["002 step 1"]\nsays = "x"\nstate = "ours"\nwhy = "x"'
    with pytest.raises(ValueError, match=r"rule 'a\.b': `open` is true or not there"):
        read_rules(f"[[rule]]\n{table}\nopen = {value}")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param("@pytest.mark.requirement('a.b')\ndef test_x(): ...", ["a.b"], id="function"),
        pytest.param(
            "@pytest.mark.requirement('a.b', 'a.c')\n"
            "@pytest.mark.requirement('a.d')\n"
            "async def test_x(): ...",
            ["a.b", "a.c", "a.d"],
            id="several",
        ),
        pytest.param(
            "@pytest.mark.requirement('a.b')\n"
            "class ChannelContract:\n"
            "    @pytest.mark.requirement('a.c')\n"
            "    def test_x(self): ...",
            ["a.b", "a.c"],
            id="class",
        ),
        pytest.param("pytestmark = pytest.mark.requirement('a.b')", ["a.b"], id="module"),
        pytest.param(
            "pytestmark = [pytest.mark.full, pytest.mark.requirement('a.b')]", ["a.b"], id="list"
        ),
        pytest.param(
            "pytestmark: list[M] = [pytest.mark.requirement('a.b')]", ["a.b"], id="annotated"
        ),
        pytest.param(
            "@pytest.mark.parametrize('x', [\n"
            "    pytest.param(1, marks=pytest.mark.requirement('a.b')),\n"
            "    pytest.param(2, marks=[pytest.mark.full, pytest.mark.requirement('a.c')]),\n"
            "])\n"
            "def test_x(x): ...",
            ["a.b", "a.c"],
            id="param",
        ),
        pytest.param(
            "@pytest.mark.requirement(NAME)\ndef test_x(): ...", ["NAME"], id="not-a-literal"
        ),
        pytest.param("@pytest.mark.requirement()\ndef test_x(): ...", [""], id="no-id"),
        pytest.param("@pytest.mark.requirement('a.b')\ndef make_x(): ...", [], id="not-a-test"),
        pytest.param("unused = pytest.mark.requirement('a.b')", [], id="not-applied"),
        pytest.param("@pytest.mark.rule('R1')\ndef test_x(): ...", [], id="another-mark"),
    ],
)
def test_markers_are_found_where_pytest_applies_them(source: str, found: list[str]) -> None:
    assert sorted(marker.rule for marker in find_markers(source, place="t.py")) == found


def test_a_marker_knows_its_place() -> None:
    source = "\n\n@pytest.mark.requirement('a.b')\ndef test_x(): ..."
    assert find_markers(source, place="tests/test_x.py") == [
        Marker(rule="a.b", place="tests/test_x.py:3")
    ]
