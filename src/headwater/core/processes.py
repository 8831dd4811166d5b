"""Broker processes: start one and wait until it serves, stop it, leave no orphan; join one that others share.

Nobody polls a port: the child writes its address (or why it cannot start) into an inherited pipe. Three modes:

* ``owner``: it ends with the process that started it, however that ends. The child holds one end of a pipe of
  which only the starter has the other; a forked child of the starter closes its copy, and what the starter
  executes does not inherit it. It has a session of its own: Ctrl-C in the terminal is the starter's to handle.
* ``shared``: it ends a moment after its last user. Every user holds a shared lock on ``<data>/users``; see `join`.
* ``own``: it runs until somebody stops it.

What the child says goes to ``<data>/broker.log``. A data directory that is made here is removed here; if the
starter cannot do that any more (SIGKILL), the child does.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headwater.core.endpoint import read_endpoint
from headwater.core.errors import Conflict, Denied, HeadwaterError, NotFound, Unavailable, UsageError

START_SECONDS = 60.0  # a recovery of gigabytes may come first; without one it is 0.1 s
STOP_SECONDS = 15.0  # the broker gives itself 10 for what is in flight
LOG_FILE = "broker.log"
LOG_BYTES_MAX = 4 << 20  # at a start a longer one is put aside, as broker.log.1
SOURCE_ROOT = str(Path(__file__).parents[2])

_ERRORS: dict[int, type[HeadwaterError]] = {
    kind.exit_code: kind for kind in (HeadwaterError, UsageError, NotFound, Conflict, Denied, Unavailable)
}
_running: weakref.WeakSet[BrokerProcess] = weakref.WeakSet()
_left: set[int] = set()  # children that were let go: reaped when there is an occasion


class BrokerProcess:
    """A running broker that this process started. Ends it at ``stop``, at the end of a ``with``, or when it dies."""

    def __init__(
        self, process: subprocess.Popen[bytes], address: str, data: Path, alive: int | None, made_data: bool
    ) -> None:
        self.address = address
        self.pid = process.pid
        self.data = data
        self.log_path = data / LOG_FILE
        self._process = process
        self._alive = alive  # the end of the pipe that says that we are here
        self._made_data = made_data
        self._starter = os.getpid()
        _running.add(self)
        if made_data:
            # For who never calls stop(): at the latest when this interpreter ends.
            weakref.finalize(self, _remove_if_ended, process, data, self._starter)

    def stop(self, timeout: float = STOP_SECONDS) -> int:
        """A clean stop; the exit code. A broker that does not end in time is killed."""
        if not self._is_ours():
            return 0
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self._process.kill()
        return self._ended()

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone. The data directory stays, also one that was made for it."""
        if self._is_ours():
            self._process.kill()
            self._process.wait()
            self._close_pipe()

    def wait(self, timeout: float | None = None) -> int:
        """Until it ends by itself; the exit code."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            cause = f"it still runs after {timeout} s"
            raise Unavailable("wait for the broker", place=self.address, cause=cause) from None

    def is_running(self) -> bool:
        return self._process.poll() is None

    def let_go(self) -> None:
        """It goes on without us (only in the modes ``shared`` and ``own``)."""
        self._process.returncode = 0  # else subprocess would warn that it still runs
        _left.add(self.pid)
        self._close_pipe()

    def __enter__(self) -> BrokerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _is_ours(self) -> bool:
        """A forked child inherits this object, but not the broker."""
        return os.getpid() == self._starter

    def _ended(self) -> int:
        code = self._process.wait()
        self._close_pipe()
        if self._made_data:
            shutil.rmtree(self.data, ignore_errors=True)
        return code

    def _close_pipe(self) -> None:
        _running.discard(self)
        if self._alive is not None:
            os.close(self._alive)
            self._alive = None


def _remove_if_ended(process: subprocess.Popen[bytes], data: Path, starter: int) -> None:
    """A broker that still runs removes the directory itself, as soon as it notices that we are gone."""
    if os.getpid() == starter and process.poll() is not None:
        shutil.rmtree(data, ignore_errors=True)


def _forget_in_forked_child() -> None:
    for broker in list(_running):
        broker._close_pipe()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_forked_child)


def start_broker(
    data: str | os.PathLike[str] | None = None,
    *,
    listen: str = "127.0.0.1:0",
    advertise: str | None = None,
    insecure_listen: bool = False,
    settings: Mapping[str, str] | None = None,
    mode: str = "owner",
    loop: str | None = None,
    timeout: float = START_SECONDS,
) -> BrokerProcess:
    """Start a broker on ``data`` (None: a new temporary directory) and return when it serves clients.

    Raises the child's own error if it cannot start: Conflict for a port in use or a directory in use, UsageError
    for a setting that is wrong, and so on.
    """
    made_data = data is None
    directory = Path(tempfile.mkdtemp(prefix="headwater-")) if data is None else Path(data).absolute()
    arguments = ["--data", str(directory), "--listen", listen, "--mode", mode]
    if advertise is not None:
        arguments += ["--advertise", advertise]
    if insecure_listen:
        arguments.append("--insecure-listen")
    if loop is not None:
        arguments += ["--loop", loop]
    if made_data:
        arguments.append("--temporary")
    for name, value in (settings or {}).items():
        arguments += ["--set", f"{name}={value}"]
    try:
        return _spawn(arguments, directory, made_data, mode, timeout)
    except BaseException:
        if made_data:
            shutil.rmtree(directory, ignore_errors=True)
        raise


def _spawn(arguments: Sequence[str], data: Path, made_data: bool, mode: str, timeout: float) -> BrokerProcess:
    output, output_start = _open_output(data)
    ready, ready_child = os.pipe()
    alive_child, alive = os.pipe() if mode == "owner" else (None, None)
    inherited = [ready_child] if alive_child is None else [ready_child, alive_child]
    fds = ["--ready-fd", str(ready_child)]
    if alive_child is not None:
        fds += ["--alive-fd", str(alive_child)]
    try:
        process = subprocess.Popen(
            # -P: a file of the user's named like a module of Python's must not be imported
            [sys.executable, "-P", "-m", "headwater.server", *arguments, *fds],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, pass_fds=inherited, close_fds=True,
            start_new_session=True, env=_environment(),
        )  # fmt: skip
    except BaseException:
        os.close(ready)
        if alive is not None:
            os.close(alive)
        raise
    finally:
        os.close(output)
        for fd in inherited:
            os.close(fd)
    try:
        line = _first_line(ready, process, timeout)
        address = _address(line, process, data, output_start)
    except BaseException:
        process.kill()
        process.wait()
        if alive is not None:
            os.close(alive)
        raise
    finally:
        os.close(ready)
    return BrokerProcess(process, address, data, alive, made_data)


def _environment() -> dict[str, str]:
    """The child imports the same headwater, from wherever this one came."""
    environment = dict(os.environ)
    paths = [SOURCE_ROOT, *filter(None, [environment.get("PYTHONPATH")])]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    # Without byte code a start compiles 150 files: 0.35 s instead of 0.1. An installed package has it anyway;
    # a checkout gets it beside our own sources.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def _open_output(data: Path) -> tuple[int, int]:
    """The file for what the child says, and where it ends now."""
    path = data / LOG_FILE
    try:
        data.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > LOG_BYTES_MAX:
            path.replace(path.with_name(LOG_FILE + ".1"))
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise Denied(
            "use the data directory", place=str(data), cause=error.strerror or error,
            next_step="Choose a directory that this user may write.",
        ) from None  # fmt: skip
    return fd, os.fstat(fd).st_size


def _first_line(ready: int, process: subprocess.Popen[bytes], timeout: float) -> str:
    """What the child says of itself; empty if it ended without a word."""
    deadline = time.monotonic() + timeout
    poller = select.poll()
    poller.register(ready, select.POLLIN)
    line = b""
    while not line.endswith(b"\n"):
        # Now and then a look at the process itself: a fork of ours may hold the pipe open.
        if poller.poll(200):
            piece = os.read(ready, 65536)
            if not piece:
                break
            line += piece
        elif process.poll() is not None and not poller.poll(0):
            break
        elif time.monotonic() > deadline:
            raise Unavailable(
                "start the broker", cause=f"it was not ready after {timeout:g} s",
                next_step="Give it more time if it recovers a large log (timeout=…).",
            )  # fmt: skip
    return line.decode(errors="replace").strip()


def _address(line: str, process: subprocess.Popen[bytes], data: Path, output_start: int) -> str:
    if line.startswith("{"):
        parts: dict[str, Any] = json.loads(line)
        kind = _ERRORS.get(parts.pop("exit_code"), HeadwaterError)
        raise kind(parts.pop("operation"), **parts)
    if line:
        return line
    code = process.wait()
    with contextlib.suppress(OSError), open(data / LOG_FILE, "rb") as file:
        file.seek(output_start)
        said = file.read().decode(errors="replace").strip()
        raise HeadwaterError(
            "start the broker", place=str(data), cause=f"it ended with exit code {code}: {said[-2000:] or 'silently'}"
        )
    raise HeadwaterError("start the broker", place=str(data), cause=f"it ended with exit code {code}")


def _reap() -> None:
    for pid in list(_left):
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                continue
        _left.discard(pid)


class SharedBroker:
    """A broker that this process uses together with others. ``leave`` when done; it ends after the last one."""

    def __init__(self, address: str, pid: int, data: Path, users: int, started: BrokerProcess | None) -> None:
        self.address = address
        self.pid = pid
        self.data = data
        self.started = started is not None  # by us; it may outlive us
        self._users: int | None = users
        self._process = started

    def leave(self) -> None:
        if self._users is not None:
            os.close(self._users)
            self._users = None
        if self._process is not None:
            self._process.let_go()
            self._process = None

    def __enter__(self) -> SharedBroker:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()


def join(
    data: str | os.PathLike[str], *, settings: Mapping[str, str] | None = None, timeout: float = START_SECONDS
) -> SharedBroker:
    """The broker on ``data``: the one that runs, whoever started it, else a new shared one.

    The shared lock is taken first: from then on a shared broker that runs does not end, and one that is ending
    (it keeps the lock for itself) is waited for. A second lock (``<data>/owner``) lets one process at a time look
    and start.
    """
    _reap()
    directory = Path(data).absolute()
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Denied("use the data directory", place=str(directory), cause=error.strerror or error) from None
    deadline = time.monotonic() + timeout
    users = _locked(directory / "users", fcntl.LOCK_SH, deadline)
    try:
        with _starting(directory, deadline):
            found = read_endpoint(directory)
            if found is not None and found.is_alive():
                return SharedBroker(found.address, found.pid, directory, users, None)
            started = start_broker(directory, settings=settings, mode="shared", timeout=timeout)
            return SharedBroker(started.address, started.pid, directory, users, started)
    except BaseException:
        os.close(users)
        raise


@contextlib.contextmanager
def _starting(directory: Path, deadline: float) -> Iterator[None]:
    fd = _locked(directory / "owner", fcntl.LOCK_EX, deadline)
    try:
        yield
    finally:
        os.close(fd)


def _locked(path: Path, kind: int, deadline: float) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        while True:
            try:
                fcntl.flock(fd, kind | fcntl.LOCK_NB)
                return fd
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Unavailable(
                        "join the broker", place=str(path.parent),
                        cause="it was starting or stopping all the time", next_step="Try again.",
                    ) from None  # fmt: skip
                time.sleep(0.01)
    except BaseException:
        os.close(fd)
        raise
