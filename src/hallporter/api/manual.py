"""The page at `/docs`: the API as a person reads it, made from its own description."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from typing import Any

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff }
h2 { margin-top: 2.5rem; text-transform: capitalize }
article { border-top: 1px solid #ddd; padding: .5rem 0 }
h3 { font-size: 1rem; margin: .5rem 0 0 }
code { font: .9em ui-monospace, monospace }
b { display: inline-block; min-width: 4rem }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; margin: .5rem 0 }
dd { margin: 0 }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #111 }
  article { border-color: #333 } a { color: #8bf } }
"""

_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none';"
        " frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
}


def page(description: dict[str, Any]) -> str:
    """HTML that needs nothing from anywhere else."""
    info = description["info"]
    by_tag: dict[str, list[str]] = {}
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            tag = operation.get("tags", ["other"])[0]
            by_tag.setdefault(tag, []).append(_operation(method, path, operation, description))
    sections = "".join(
        f"<h2>{escape(tag)}</h2>{''.join(operations)}" for tag, operations in by_tag.items()
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(info['title'])}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>"
        f"<p>{_prose(info.get('description', ''))}</p>"
        '<p>For programs: <a href="/openapi.json">openapi.json</a>.</p>'
        f"{sections}</body></html>"
    )


def _operation(method: str, path: str, operation: dict[str, Any], whole: dict[str, Any]) -> str:
    fields = [
        _field(f"{one['name']} ({one['in']})", one, is_required=one.get("required", False))
        for one in operation.get("parameters", [])
    ]
    fields += _body(operation, whole)
    answers = "".join(
        f"<dt><code>{escape(status)}</code></dt><dd>{_prose(answer.get('description', ''))}</dd>"
        for status, answer in operation["responses"].items()
    )
    return (
        f"<article><h3><code><b>{escape(method.upper())}</b> {escape(path)}</code></h3>"
        f"<p>{_sentences(operation)}</p>"
        f"<dl>{''.join(fields)}</dl><dl>{answers}</dl></article>"
    )


def _sentences(operation: dict[str, Any]) -> str:
    summary = operation.get("summary", "")
    end = "" if summary.endswith(("?", "!", ".")) else "."
    return f"{_prose(summary)}{end} {_prose(operation.get('description', ''))}".rstrip()


def _body(operation: dict[str, Any], whole: dict[str, Any]) -> list[str]:
    content = operation.get("requestBody", {}).get("content", {})
    reference = content.get("application/json", {}).get("schema", {}).get("$ref", "")
    schema = whole["components"]["schemas"].get(reference.rpartition("/")[2], {})
    required = schema.get("required", [])
    return [
        _field(name, field, is_required=name in required)
        for name, field in schema.get("properties", {}).items()
    ]


def _field(name: str, field: dict[str, Any], *, is_required: bool) -> str:
    needed = "" if is_required else " <i>optional</i>"
    text = _prose(field.get("description", ""))
    return f"<dt><code>{escape(name)}</code>{needed}</dt><dd>{text}</dd>"


def _prose(text: str) -> str:
    """Escaped, with `code` shown as such."""
    pieces = escape(text).split("`")
    return "".join(
        f"<code>{piece}</code>" if place % 2 else piece for place, piece in enumerate(pieces)
    )
