from __future__ import annotations

import re
from pathlib import Path

import pytest

from hallporter_wire.stdin import AgentInput, encode_input
from tests.runner.program import Program

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"
INPUT = AgentInput(
    prompt="<messages></messages>",
    messages=("<message>hello</message>",),
    group_folder="main",
    chat_jid="web:main",
    is_main=True,
    through=7,
)


def example(language: str, path: Path) -> Path:
    (code,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    path.write_text(code)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("language", "first", "second", "through"),
    [
        ("python", r"You wrote 1 message\(s\)\.", r"You added: and tomorrow\?", (7, 8)),
        ("sh", r"It is \d\d:\d\d\.", r"Now it is \d\d:\d\d\.", (None, None)),
    ],
)
def test_an_agent_of_the_protocol_page_answers_and_ends(
    tmp_path: Path, language: str, first: str, second: str, through: tuple[int | None, int | None]
) -> None:
    argv = [str(example(language, tmp_path / "agent"))]
    with Program(argv, workspace=tmp_path) as program:
        program.begin(encode_input(INPUT))
        block = program.block()
        assert re.fullmatch(first, block.result or "")
        file = program.tell(1, "and tomorrow?", through=8)
        follow_up = program.block()
        assert re.fullmatch(second, follow_up.result or "")
        assert (block.through, follow_up.through) == through
        assert not file.exists()
        program.close()
        assert program.end() == (0, [], "")
