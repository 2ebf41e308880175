from __future__ import annotations

import re
import sys
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallporter.web.markdown import render

BLOCKS = {"p", "ul", "ol", "li", "blockquote", "h3", "h4", "h5", "h6", "hr", "br", "div", "pre"}
TABLES = {"table", "thead", "tbody", "tr", "th", "td"}
TAGS = BLOCKS | TABLES | {"a", "em", "strong", "s", "code", "bdi", "button"}
ATTRIBUTES = {"dir", "class", "href", "title", "rel", "target", "tabindex", "type", "start"}


class Reader(HTMLParser):
    """Collects what a browser would make of it."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(render(text))
    reader.close()
    return reader


HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:x)",
    "[x](/logout)",
    "[x](//evil.example)",
    "<javascript:alert(1)>",
    "![x](javascript:alert(1))",
    "![x](https://evil.example/pixel.png)",
    '[x](https://a.example "\\" onclick=\\"alert(1)")',
    '```"><script>alert(1)</script>\ncode\n```',
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;",
    "[a]: javascript:alert(1)\n\n[a]",
    "|<b>|\n|:-:|\n|<i onclick=x>|",
    "<!-- --><svg/onload=alert(1)>",
    "</li></ol><h1>broken out</h1>",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_that_acts_comes_through(text: str) -> None:
    for tag, attributes in read(text).tags:
        assert tag in TAGS
        assert attributes.keys() <= ATTRIBUTES
        assert (attributes.get("href") or "https://").startswith(("https://", "http://", "mailto:"))


@given(st.text(alphabet=st.sampled_from("<>[]()!*_`#|-:&;\"'\\ \nahj/=x"), max_size=60))
def test_no_mixture_of_signs_makes_a_tag_of_its_own(text: str) -> None:
    for tag, attributes in read(text).tags:
        assert tag in TAGS
        assert attributes.keys() <= ATTRIBUTES


def test_a_link_says_nothing_of_where_it_was_clicked() -> None:
    tag, attributes = read("[x](https://a.example/?a=1&b=2)").tags[1]
    assert tag == "a"
    assert attributes["href"] == "https://a.example/?a=1&b=2"
    assert attributes["rel"] == "noopener noreferrer nofollow"
    assert attributes["target"] == "_blank"


def test_a_picture_is_a_link_so_that_nothing_is_fetched() -> None:
    reader = read("![a cat](https://a.example/cat.png)")
    assert [tag for tag, _ in reader.tags] == ["p", "a"]
    assert reader.words.strip() == "Picture: a cat"


def test_a_picture_inside_a_link_is_words() -> None:
    reader = read("[![a cat](https://a.example/cat.png)](https://b.example)")
    assert [tag for tag, _ in reader.tags] == ["p", "a"]
    assert reader.tags[1][1]["href"] == "https://b.example"


def test_code_has_its_language_and_a_button_to_copy_it() -> None:
    html = render("```python\nprint('<b>')\n```")
    assert "<bdi>python</bdi>" in html
    assert 'class="copy"' in html
    assert "print(&#x27;&lt;b&gt;&#x27;)" in html


def test_columns_are_aligned_by_class() -> None:
    html = render("|a|b|\n|:-:|--:|\n|1|2|")
    assert 'class="align-center"' in html
    assert 'class="align-right"' in html
    assert "style" not in html


def test_headings_stand_below_those_of_the_page() -> None:
    assert [tag for tag, _ in read("# a\n\n##### b").tags] == ["h3", "h6"]


def test_lines_stay_lines() -> None:
    assert "<br" in render("one\ntwo")


def test_each_block_finds_its_own_direction() -> None:
    for _, attributes in read("مرحبا\n\n- سلام\n\n> hello").tags:
        assert attributes["dir"] == "auto"


@pytest.mark.parametrize("text", ["> " * 40 + "deep", "- " * 40 + "deep", "x " * 20_000 + "deep"])
def test_no_word_is_lost_however_deep_or_long(text: str) -> None:
    assert "deep" in read(text).words


@pytest.mark.parametrize(
    "text",
    [
        "[1]: https://a.example/paper",
        'Sources:\n\n[1]: https://a.example "A <title>"\n[2]: https://b.example',
        "> [quoted]: https://a.example",
        "- [listed]: https://a.example",
        "[twice]: https://a.example\n[twice]: https://b.example\n\nsee [twice]",
        "[*x*<b>]: https://a.example",
    ],
)
def test_what_a_link_could_refer_to_is_shown_when_none_does(text: str) -> None:
    words = read(text).words
    for word in re.findall(r"\[[^\]]+\]: |https://[a-z.]+", text):
        if word != "https://a.example" or "twice" not in text:
            assert word in words
    assert "A <title>" in words or "title" not in text


def test_what_a_link_does_refer_to_is_not() -> None:
    reader = read(
        "see [the Paper][Ref] and ![a cat][cat]\n\n[ref]: https://a.example\n"
        "[cat]: https://a.example/cat.png"
    )
    assert reader.words.strip() == "see the Paper and Picture: a cat"


def test_a_little_text_never_becomes_a_large_table() -> None:
    bombs = ["|a" * 350 + "|\n" + "|-" * 350 + "|\n" + "|\n" * 190]
    bombs.append("|a" * 60 + "|\n" + "|-" * 60 + "|\n" + "|\n" * 5000)
    for bomb in bombs:
        assert len(render(bomb)) < 20 * len(bomb) + 10_000


def test_an_ordinary_table_in_a_long_text_is_a_table() -> None:
    text = "words\n\n" * 200 + "| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert "<table" in render(text)


def steps_of(text: str) -> int:
    """How many functions were called to render it: work, whatever the machine."""
    count = 0

    def seen(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(seen)
    try:
        render(text)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "unit", ["![", "[", "[a](", "[\n", "*[", "[`", "[<", "* a\n", "a\n=\n", "**a", "_a"]
)
def test_no_text_makes_the_parser_work_for_long(unit: str) -> None:
    render("**warm**")
    assert steps_of(unit * (29_800 // len(unit))) < 400_000


def test_what_is_too_much_to_set_is_shown_as_it_was_written_and_says_so() -> None:
    reader = read("![" * 14_900)
    assert "![" * 14_900 in reader.words
    assert "Shown as it was written" in reader.words


def test_a_long_answer_of_the_ordinary_kind_is_set() -> None:
    assert "<strong>" in render("Some **bold** [words](https://a.example) and `code`.\n" * 400)
