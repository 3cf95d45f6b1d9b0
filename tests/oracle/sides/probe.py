"""Compiles the C++ probe against TensorFlow's headers and communicates with it."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).with_name("definitions_probe.cc")


class Probe:
    """A running probe: `ask` sends byte strings and returns the byte strings of the answer."""

    def __init__(self, program: Path) -> None:
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def ask(self, *parts: bytes) -> list[bytes]:
        assert self.process.stdin is not None
        self.process.stdin.write(struct.pack(">I", len(parts)) + b"".join(struct.pack(">I", len(part)) + part for part in parts))
        self.process.stdin.flush()
        return [self._read(self._number()) for _ in range(self._number())]

    def _number(self) -> int:
        number: int = struct.unpack(">I", self._read(4))[0]
        return number

    def _read(self, size: int) -> bytes:
        assert self.process.stdout is not None
        data = self.process.stdout.read(size)
        if len(data) != size:
            raise RuntimeError(f"The probe ended with code {self.process.wait(10)}")
        return data

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(10)


def compiler() -> str | None:
    """The C++ compiler, None if there is none."""
    return shutil.which("g++") or shutil.which("clang++")


def compile_probe(place: Mapping[str, str], folder: Path) -> Path:
    """Compile the probe into `folder`; `place` has TensorFlow's `include` and `lib`."""
    program = folder / "definitions_probe"
    libraries = sorted(path.name for path in Path(place["lib"]).glob("libtensorflow_*.so.2"))
    command = [
        *(compiler() or "c++", "-std=c++17", "-O0", "-w", f"-I{place['include']}", str(SOURCE), "-o", str(program), f"-L{place['lib']}"),
        *(f"-l:{name}" for name in libraries),
        f"-Wl,-rpath,{place['lib']}",
    ]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    return program
