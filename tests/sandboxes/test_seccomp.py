from __future__ import annotations

import struct

import pytest

from hallporter.sandboxes.seccomp import ALLOW, DENIED, KILL, MACHINES, REFUSE, UNKNOWN, program

READ = {"x86_64": 0, "aarch64": 63}
NEW_USER_NAMESPACE = 0x10000000
A_NEW_THREAD = 0x3D0F00  # the flags of pthread_create
SIGCHLD = 17


def verdict(code: bytes, *, arch: int, number: int, argument: int = 0) -> int:
    """What the kernel would decide: an interpreter of the few instructions that are used."""
    data = struct.pack("=IIQ6Q", number, arch, 0, argument, 0, 0, 0, 0, 0)
    lines = list(struct.iter_unpack("=HBBI", code))
    at, value = 0, 0
    while True:
        opcode, on_true, on_false, operand = lines[at]
        at += 1
        match opcode:
            case 0x20:
                (value,) = struct.unpack_from("=I", data, operand)
            case 0x15:
                at += on_true if value == operand else on_false
            case 0x35:
                at += on_true if value >= operand else on_false
            case 0x45:
                at += on_true if value & operand else on_false
            case 0x06:
                return int(operand)
            case _:
                raise AssertionError(hex(opcode))


@pytest.fixture(params=MACHINES)
def name(request: pytest.FixtureRequest) -> str:
    machine: str = request.param
    return machine


@pytest.fixture
def code(name: str) -> bytes:
    made = program(name)
    assert made is not None
    return made


def test_an_ordinary_call_is_allowed(name: str, code: bytes) -> None:
    assert verdict(code, arch=MACHINES[name].audit, number=READ[name]) == ALLOW


def test_every_forbidden_call_is_refused(name: str, code: bytes) -> None:
    machine = MACHINES[name]
    numbers = [row[machine.column] for row in DENIED.values()]

    assert {
        verdict(code, arch=machine.audit, number=number) for number in numbers if number is not None
    } == {REFUSE}


def test_what_is_neither_forbidden_nor_special_is_allowed(name: str, code: bytes) -> None:
    machine = MACHINES[name]
    special = {row[machine.column] for row in DENIED.values()} | {435}

    assert {
        verdict(code, arch=machine.audit, number=number)
        for number in range(500)
        if number not in special
    } == {ALLOW}


def test_another_machines_call_ends_the_process(name: str, code: bytes) -> None:
    i386 = 0x40000003

    assert verdict(code, arch=i386, number=READ[name]) == KILL


def test_the_x32_interface_is_refused() -> None:
    code = program("x86_64")
    assert code is not None

    assert verdict(code, arch=MACHINES["x86_64"].audit, number=0x40000000) == REFUSE


def test_a_process_or_thread_may_be_made_but_no_namespace(name: str, code: bytes) -> None:
    machine = MACHINES[name]

    def clone(flags: int) -> int:
        return verdict(code, arch=machine.audit, number=machine.clone, argument=flags)

    assert clone(SIGCHLD) == ALLOW
    assert clone(A_NEW_THREAD) == ALLOW
    assert clone(SIGCHLD | NEW_USER_NAMESPACE) == REFUSE


def test_clone3_is_unknown_so_that_programs_fall_back(name: str, code: bytes) -> None:
    assert verdict(code, arch=MACHINES[name].audit, number=435) == UNKNOWN


def test_a_machine_without_a_table_has_no_filter() -> None:
    assert program("riscv64") is None
