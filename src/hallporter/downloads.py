"""Files as readers get them: to be kept, never to be run by a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import FileResponse

from hallporter.domain.enclosure import UNKNOWN_TYPE

if TYPE_CHECKING:
    from pathlib import Path

    from hallporter.domain.enclosure import Enclosure

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


def download(file: Enclosure, path: Path) -> FileResponse:
    """Under its own name; of no type, since an agent chose its ending."""
    return FileResponse(
        path,
        headers=HEADERS,
        media_type=UNKNOWN_TYPE,
        filename=file.name,
        content_disposition_type="attachment",
    )
