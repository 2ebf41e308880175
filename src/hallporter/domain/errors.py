"""What can go wrong, as a tree: refused (never retry), unavailable (retry), corrupt (put aside)."""

from __future__ import annotations

from typing import ClassVar


class HallporterError(Exception):
    """Root of the tree; `code` is the public name, `facts` are for logs and answers."""

    code: ClassVar[str] = "ERROR"

    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(message)
        self.message = message
        self.facts = facts


class RefusedError(HallporterError):
    """Trying again would not help."""

    code = "REFUSED"


class UnavailableError(HallporterError):
    """It may work later."""

    code = "UNAVAILABLE"


class CorruptInputError(HallporterError):
    """What came in cannot be understood; it is put aside, not dropped."""

    code = "CORRUPT_INPUT"


class InvalidRequestError(RefusedError):
    """A value from outside does not fit."""

    code = "INVALID_REQUEST"


class InvalidSettingsError(RefusedError):
    """A setting names something that cannot be."""

    code = "INVALID_SETTINGS"


class NotFoundError(RefusedError):
    """There is no such thing, or it is not for this caller."""

    code = "NOT_FOUND"


class ConflictError(RefusedError):
    """The name is taken, or the home is held by another host."""

    code = "CONFLICT"


class UnauthorizedError(RefusedError):
    """No token, or one that is not ours."""

    code = "UNAUTHORIZED"


class ForbiddenError(RefusedError):
    """The request does not show that it comes from a page of ours."""

    code = "FORBIDDEN"


class RateLimitedError(RefusedError):
    """Too many attempts; the fact `retry_after` says how many seconds to wait."""

    code = "RATE_LIMITED"


class TooLargeError(RefusedError):
    """More than the limit says."""

    code = "TOO_LARGE"


class AgentRefusedError(RefusedError):
    """The agent's settings make a start impossible: no ladder, the chat is told at once."""

    code = "AGENT_REFUSED"


class AgentFailedError(UnavailableError):
    """The agent could not be started, or ended without an answer."""

    code = "AGENT_FAILED"


class ChannelDownError(UnavailableError):
    """The network is away; a send waits without counting."""

    code = "CHANNEL_DOWN"


class MessageRefusedError(RefusedError):
    """The network will never take this message."""

    code = "MESSAGE_REFUSED"


class StoreUnavailableError(UnavailableError):
    """The database did not take the write; nothing of it was kept."""

    code = "STORE_UNAVAILABLE"


class DiskError(StoreUnavailableError):
    """The disk has no room left, or does not work; nothing of the write was kept."""

    code = "DISK_ERROR"


class StoreRefusedError(RefusedError):
    """The database file is damaged or from a newer version; it was left as it is."""

    code = "STORE_REFUSED"


class UnregisteredError(RefusedError):
    """A request came from a folder that belongs to no group."""

    code = "UNREGISTERED"


class FencedError(RefusedError):
    """Another claim has taken the chat since; this one's writes no longer count."""

    code = "FENCED"
