"""The life of a runner: stdin, an answer, then follow-ups until the host says enough."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

from hallporter_runner.agents import AgentError, Batch, open_agent
from hallporter_runner.desk import Desk
from hallporter_runner.inbox import Closed, HostGone
from hallporter_wire.errors import WireError
from hallporter_wire.stdin import decode_input

if TYPE_CHECKING:
    from hallporter_runner.workplace import Workplace

_DONE, _FAILED = 0, 1  # exit codes


def serve(kind: str, workplace: Workplace) -> int:
    """Answer until closed; the exit code."""
    desk = Desk(input_folder=workplace.input, output=sys.stdout.fileno())
    try:
        _converse(kind, workplace, desk)
    except Closed:
        return _DONE
    except (HostGone, BrokenPipeError):
        print("nobody reads the output any more; ending", file=sys.stderr)
    except WireError as error:
        desk.fail(f"The input of the agent is not as the protocol says: {error}")
    except AgentError as error:
        desk.fail(str(error))
    except Exception as error:
        desk.fail(f"The {kind} agent stopped: {type(error).__name__}: {error}")
        raise  # the trace goes to stderr, where the host keeps it for the operator
    return _FAILED


def _converse(kind: str, workplace: Workplace, desk: Desk) -> NoReturn:
    start = decode_input(sys.stdin.buffer.read())
    desk.start(session_id=start.session_id, through=start.through)
    agent = open_agent(kind, start, workplace)
    batch = Batch(prompts=(start.prompt,))
    while True:
        agent.answer(batch, desk)
        batch = desk.next()
