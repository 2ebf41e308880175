"""What every test shares: the event loop, no skips in CI, and how long each suite took."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator

import hypothesis
import pytest

# A slow machine is no defect: examples have no deadline of their own.
hypothesis.settings.register_profile("house", deadline=None, print_blob=True)
hypothesis.settings.load_profile("house")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


class SuiteTimes:
    """A suite is a folder below tests/."""

    def __init__(self) -> None:
        self._tests: Counter[str] = Counter()
        self._seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        suite = "/".join(report.nodeid.split("::")[0].split("/")[:-1][:2])
        self._tests[suite] += report.when == "call"
        self._seconds[suite] = self._seconds.get(suite, 0) + report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("suites")
        for suite, seconds in self._seconds.items():
            terminalreporter.line(f"{suite:<24}{self._tests[suite]:>6} tests{seconds:>9.1f} s")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(SuiteTimes())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        _fail_in_ci(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped:
        _fail_in_ci(report)
    return report


def _fail_in_ci(report: pytest.TestReport | pytest.CollectReport) -> None:
    """A machine that proves nothing must not look green; a laptop may lack a component."""
    if os.environ.get("CI") != "true":
        return
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    report.outcome = "failed"
    report.longrepr = f"{why}\nIn CI a skip is a failure: install what the test needs."
