"""What the house is told: the environment, `.env` and `hallporter.toml`, read in one place."""

from __future__ import annotations

from hallporter.settings.agreed import (
    HostSettings,
    Loaded,
    LogSettings,
    Settings,
    StoreSettings,
    check_agent,
)
from hallporter.settings.listing import changes, listed
from hallporter.settings.loading import load
from hallporter.settings.origin import Origin, Source
from hallporter.settings.variables import environment

__all__ = [
    "HostSettings",
    "Loaded",
    "LogSettings",
    "Origin",
    "Settings",
    "Source",
    "StoreSettings",
    "changes",
    "check_agent",
    "environment",
    "listed",
    "load",
]
