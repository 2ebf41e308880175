"""The system calls a boxed program may not make, as a filter that the kernel runs (classic BPF)."""

from __future__ import annotations

import errno
import struct
from dataclasses import dataclass

# Offsets in `struct seccomp_data`; the low half of an argument comes first on both machines.
_NUMBER, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16

# Opcodes of <linux/bpf_common.h>.
_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_ANY_BIT = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K

ALLOW = 0x7FFF0000
KILL = 0x80000000  # the whole process
REFUSE = 0x00050000 | errno.EPERM
# The C library falls back to `clone`, whose flags a filter can read; those of `clone3` it cannot.
UNKNOWN = 0x00050000 | errno.ENOSYS

_X32 = 0x40000000  # the bit that marks a call of the x32 interface

# CLONE_NEW{TIME,NS,CGROUP,UTS,IPC,USER,PID,NET}
_NEW_NAMESPACE = 0x80 | 0x20000 | 0x2000000 | 0x4000000 | 0x8000000 | 0x10000000 | 0x20000000
_NEW_NAMESPACE |= 0x40000000


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """How one processor family numbers its calls."""

    audit: int  # AUDIT_ARCH_…
    clone: int
    has_x32: bool
    column: int  # of the table below


MACHINES = {
    "x86_64": Machine(audit=0xC000003E, clone=56, has_x32=True, column=0),
    "aarch64": Machine(audit=0xC00000B7, clone=220, has_x32=False, column=1),
}

_CLONE3 = 435

# Name: number on x86_64, on aarch64; None where the call does not exist.
DENIED: dict[str, tuple[int | None, int | None]] = {
    # Other views of the file system.
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    # Other namespaces.
    "setns": (308, 268),
    "unshare": (272, 97),
    # Other processes.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    # Large doors into the kernel that no agent needs.
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # The machine itself.
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "create_module": (174, None),
    "query_module": (178, None),
    "get_kernel_syms": (177, None),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "syslog": (103, 116),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "clock_settime": (227, 112),
    "settimeofday": (164, 170),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "vhangup": (153, 58),
    "iopl": (172, None),
    "ioperm": (173, None),
    # Long dead, kept by the kernel for the past's sake.
    "uselib": (134, None),
    "ustat": (136, None),
    "sysfs": (139, None),
    "_sysctl": (156, None),
    "nfsservctl": (180, 42),
    "lookup_dcookie": (212, 18),
}


def program(name: str) -> bytes | None:
    """The filter for one machine (as `platform.machine()` names it); None without a table."""
    machine = MACHINES.get(name)
    if machine is None:
        return None
    numbers = sorted(
        number for row in DENIED.values() if (number := row[machine.column]) is not None
    )
    lines = [
        (_LOAD, _MACHINE, "", ""),
        (_EQUAL, machine.audit, "", "kill"),
        (_LOAD, _NUMBER, "", ""),
    ]
    if machine.has_x32:
        lines.append((_AT_LEAST, _X32, "refuse", ""))
    lines.append((_EQUAL, _CLONE3, "unknown", ""))
    lines += [(_EQUAL, number, "refuse", "") for number in numbers]
    lines += [
        (_EQUAL, machine.clone, "", "allow"),
        (_LOAD, _FIRST_ARGUMENT, "", ""),
        (_ANY_BIT, _NEW_NAMESPACE, "refuse", "allow"),
    ]
    return _assemble(lines, {"allow": ALLOW, "refuse": REFUSE, "unknown": UNKNOWN, "kill": KILL})


def _assemble(lines: list[tuple[int, int, str, str]], ends: dict[str, int]) -> bytes:
    """Put the returns behind the lines and turn names into jumps; an empty name goes on."""
    place = {name: len(lines) + index for index, name in enumerate(ends)}
    code = [
        struct.pack(
            "=HBBI",
            opcode,
            place[on_true] - index - 1 if on_true else 0,
            place[on_false] - index - 1 if on_false else 0,
            value,
        )
        for index, (opcode, value, on_true, on_false) in enumerate(lines)
    ]
    code += [struct.pack("=HBBI", _RETURN, 0, 0, value) for value in ends.values()]
    return b"".join(code)
