"""The composition root: settings in, a switchboard out, every room joined to its neighbours."""

from __future__ import annotations

from hallporter.wiring.building import Rooms, build
from hallporter.wiring.examination import read_settings, terms_of

__all__ = ["Rooms", "build", "read_settings", "terms_of"]
