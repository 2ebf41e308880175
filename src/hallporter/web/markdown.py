"""Markdown as HTML that cannot do anything: no markup of the writer's, no request, no script."""

from __future__ import annotations

import re
from functools import cache
from html import escape
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.renderer import RendererProtocol
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

_LONGEST = 30_000  # characters; what is longer is shown as it was written
_MARKS = "[*_`<~\n"  # where the parser begins to try what they may mean
_MOST_MARKS = 4_000  # each is several hundred steps of the parser when it opens what nothing closes
_MOST_CELLS = 5_000  # of tables, with those that the parser would fill in by itself
_MOST_REFERRED = 50_000  # characters of addresses that are written once and used again
_DEEPEST = 19  # levels
_SCHEME = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_LEVELS_ABOVE = 2  # the page's own headings
_MAX_LANGUAGE = 20  # characters
_AS_WRITTEN = '<p class="aside">Shown as it was written: there is too much to set.</p>'
_OUTWARD = {"rel": "noopener noreferrer nofollow", "target": "_blank"}


def render(text: str) -> str:
    """Safe to put into a page as it is."""
    if len(text) <= _LONGEST and sum(map(text.count, _MARKS)) <= _MOST_MARKS:
        parser = _parser(has_tables=_may_have_tables(text))
        tokens = parser.parse(text)
        # Where the nesting ends the parser drops words; they are worth more than their form.
        if all(token.level < _DEEPEST for token in tokens) and _referred(tokens) <= _MOST_REFERRED:
            return str(parser.renderer.render(tokens, parser.options, {}))
    return f'<p class="plain" dir="auto">{escape(text)}</p>{_AS_WRITTEN}'


def _may_have_tables(text: str) -> bool:
    """A wide head above many short rows is a little text and a very large table."""
    lines = text.splitlines()
    widest = max((line.count("|") for line in lines), default=0)
    return widest * len(lines) <= _MOST_CELLS


def _referred(tokens: Sequence[Token]) -> int:
    """A long address under a short name is a little text and a very large page."""
    return sum(
        len(str(value))
        for token in tokens
        for child in token.children or []
        if "label" in child.meta
        for value in child.attrs.values()
    )


@cache
def _parser(*, has_tables: bool) -> MarkdownIt:
    options = {"html": False, "breaks": True, "maxNesting": _DEEPEST + 1}
    parser = MarkdownIt("commonmark", {**options, "inline_definitions": True, "store_labels": True})
    parser.enable(["table", "strikethrough"] if has_tables else ["strikethrough"])
    # A path of ours behind a stranger's words would be a trap, so links lead out or nowhere.
    parser.validateLink = lambda url: _SCHEME.match(url) is not None  # type: ignore[method-assign]
    parser.core.ruler.push("house", _furnish)
    for name in ("fence", "code_block"):
        parser.add_render_rule(name, _code)
    parser.add_render_rule("image", _image)
    parser.add_render_rule("definition", _definition)
    parser.add_render_rule("table_open", _table_open)
    parser.add_render_rule("table_close", _table_close)
    return parser


def _furnish(state: StateCore) -> None:
    labels = _labels(state.tokens)
    for token in state.tokens:
        if token.type == "definition":
            # The first one of a name counts; words that no link shows are shown as they are.
            token.hidden = token.meta["id"] in labels
            labels.discard(token.meta["id"])
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + _LEVELS_ABOVE, 6)}"
        if token.nesting == 1:
            token.attrSet("dir", "auto")
            # The page's policy refuses style attributes, so alignment is a class.
            style = str(token.attrs.pop("style", ""))
            if style:
                token.attrSet("class", style.replace("text-align:", "align-"))
        _mark_links(token.children or [])


def _labels(tokens: Sequence[Token]) -> set[str]:
    return {
        child.meta["label"]
        for token in tokens
        for child in token.children or []
        if "label" in child.meta
    }


def _mark_links(tokens: Sequence[Token]) -> None:
    depth = 0
    for token in tokens:
        if token.type == "link_open":
            depth += 1
            for name, value in _OUTWARD.items():
                token.attrSet(name, value)
        elif token.type == "link_close":
            depth -= 1
        elif token.type == "image":
            token.meta["is_linked"] = depth > 0


def _code(_: RendererProtocol, tokens: Sequence[Token], index: int, *_more: object) -> str:
    token = tokens[index]
    language = (token.info.split() or [""])[0][:_MAX_LANGUAGE]
    return (
        f'<div class="code"><div class="code-head"><bdi>{escape(language)}</bdi>'
        '<button type="button" class="copy">Copy</button></div>'
        f'<pre dir="ltr" tabindex="0"><code>{escape(token.content)}</code></pre></div>\n'
    )


def _image(_: RendererProtocol, tokens: Sequence[Token], index: int, *_more: object) -> str:
    """A link instead: showing it would tell a stranger's server who reads, and when."""
    token = tokens[index]
    source = str(token.attrs["src"])
    text = token.content or source
    if token.meta.get("is_linked"):
        return escape(text)
    outward = " ".join(f'{name}="{value}"' for name, value in _OUTWARD.items())
    return f'<a href="{escape(source)}" {outward}>Picture: {escape(text)}</a>'


def _definition(_: RendererProtocol, tokens: Sequence[Token], index: int, *_more: object) -> str:
    token = tokens[index]
    if token.hidden:
        return ""
    title = f' "{token.meta["title"]}"' if token.meta["title"] else ""
    words = f"[{token.meta['label']}]: {token.meta['url']}{title}"
    return f'<p dir="auto">{escape(words)}</p>\n'


def _table_open(*_: object) -> str:
    return '<div class="table" tabindex="0"><table dir="auto">\n'


def _table_close(*_: object) -> str:
    return "</table></div>\n"
