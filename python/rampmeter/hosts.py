"""Messages between programs on real hosts, through the node of each.

>>> with Port("/run/rampd.sock", service=7) as port:  # doctest: +SKIP
...     port.send(3, b"hello").result()
...     for message in port:
...         print(message.source, message.data)

`Port` blocks; `AsyncPort` is for asyncio. A received message occupies the port's memory until it is
no longer referenced. While the memory is full, its senders are paused.
"""

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from os import PathLike
from typing import Final, Self

from rampmeter import _core
from rampmeter._core import AttachError, Finished, FullError, Message, NodeGoneError
from rampmeter.text.arguments import number_argument, whole_argument

__all__ = [
    "FAILURES",
    "AsyncPort",
    "AttachError",
    "FullError",
    "Message",
    "NodeGoneError",
    "Port",
    "SendError",
    "Ticket",
]

Data = bytes | bytearray | memoryview
"""Types of data that can be sent."""

SERVICE_MAX: Final = 65_535
"""Maximum number of a service."""
NUMBER_MAX: Final = 2**32 - 1
"""Maximum number of a node or a tenant."""
DEPTH = 1024
"""Maximum number of messages in flight."""
ARENA = 64 << 20
"""Bytes for messages, in each direction."""
BUSY_POLL = 100e-6
"""Maximum time for which a waiting thread polls before it sleeps, in seconds."""


FAILURES: Final = {
    "unreachable": "the receiver does not respond",
    "peer-restarted": "the receiver was restarted after bytes of the message had been sent",
    "refused": "no program there receives messages of this service or size",
    "unknown-peer": "no node has this number",
    "bad-size": "the message is empty or longer than the maximum",
    "stopping": "this machine's node is being stopped",
    "node-gone": "this machine's node has died, or has disconnected the program",
    "rejected": "the transport, which promises a bound, does not accept the message now",
    "corrupt": "the bytes that arrived differ from those sent, and were dropped",
    "mismatch": "the receiver could not reassemble it; its mtu or transport differs",
}
"""Reasons of failures of messages, and what they mean; `rm_failure_text` has them in C."""


class SendError(OSError):
    """A message failed: it may have been delivered or not."""

    code: Final = "failed-message"

    def __init__(self, reason: str, dst: int | None = None, service: int | None = None) -> None:
        to = "" if dst is None else f" to node {dst}, service {service},"
        text = FAILURES.get(reason, "the reason is of a later version")
        super().__init__(f"the message{to} failed: {reason}: {text}")
        self.reason = reason
        """A key of `FAILURES`."""
        self.dst = dst
        """Receiving node."""
        self.service = service
        """Service of the receiving program."""


class Ticket:
    """A message in flight through a `Port`."""

    def __init__(
        self, port: "Port", number: int, bound: float | None, dst: int, service: int
    ) -> None:
        self.dst, self.service = dst, service
        """Receiving node, and service of the receiving program."""
        self.number = number
        """Its number: messages of a port are counted from zero."""
        self.bound = bound
        """Seconds within which its outcome is reported, or `None`: see `Port.bound`."""
        self.is_over = False
        """True if it has an outcome, as of the port's last poll."""
        self.failure: str | None = None
        """The reason of its failure, if it has failed."""
        self._port = port

    def result(self, timeout: float | None = None) -> None:
        """Waits until the receiver has the message.

        Raises `SendError` if it fails, `TimeoutError` after `timeout`.
        """
        self._port._wait_until(self, timeout)
        if self.failure is not None:
            raise SendError(self.failure, self.dst, self.service)

    def _finish(self, failure: str | None) -> None:
        self.is_over, self.failure = True, failure


class Port:
    """A program's access to the node of its machine, for the messages of one service.

    Threads may share it, in the process that made it; a child after a fork opens its own port.
    Iterating yields messages until the node has ended. A waiting thread polls for at most
    `busy_poll` seconds before it sleeps, and for less or not at all if messages and outcomes are
    rare.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        service: int,
        *,
        depth: int = DEPTH,
        send: int = ARENA,
        receive: int = ARENA,
        busy_poll: float = BUSY_POLL,
    ) -> None:
        self.service = whole_argument("service", service, 0, SERVICE_MAX)
        """The service whose messages it receives."""
        self._port = _core.Port.attach(path, service, depth=depth, send=send, receive=receive)
        self._port.set_busy_poll(busy_poll)
        self._process = os.getpid()
        # Protects the fields below. One thread at a time reads completions, for all of them.
        self._changed = threading.Condition(threading.Lock())
        self._is_taking = False
        self._under_way: dict[int, Ticket] = {}
        self._messages: deque[Message] = deque()

    def send(
        self,
        dst: int,
        data: Data,
        service: int | None = None,
        *,
        deadline: float | None = None,
        tenant: int = 0,
    ) -> Ticket:
        """Sends a copy of `data` to node `dst`, to the port's own service by default.

        This blocks while the maximum number of messages is in flight. `deadline` is in seconds from
        now.
        """
        service = self.service if service is None else service
        self._refuse_children()
        with self._changed:
            while True:
                try:
                    number, bound = self._port.submit(
                        dst, service, data, deadline=deadline, tenant=tenant
                    )
                except FullError:
                    if not self._under_way:
                        raise
                    self._read_one(None)
                except (OverflowError, TypeError):
                    whole_argument("dst", dst, 0, NUMBER_MAX)
                    whole_argument("service", service, 0, SERVICE_MAX)
                    whole_argument("tenant", tenant, 0, NUMBER_MAX)
                    raise
                else:
                    break
            ticket = self._under_way[number] = Ticket(self, number, bound, dst, service)
            return ticket

    def bound(self, size: int, *, tenant: int = 0) -> float | None:
        """Returns the seconds within which the outcome of a message of `size` bytes is reported.

        They count from when the node reads the message from the submission queue, which is at once
        unless the node is busy. The node reports the outcome by then on its clock. Scheduling
        delays of the node and of the program are extra. `None` if the transport promises no bound
        for messages of `tenant`.
        """
        return self._port.bound(size, tenant=tenant)

    def receive(self, timeout: float | None = None) -> Message:
        """Returns the next message; raises `TimeoutError` if there is none in `timeout` seconds."""
        if timeout is not None:
            number_argument("timeout", timeout, 0)
        with self._changed:
            self._wait(lambda: bool(self._messages), timeout)
            return self._messages.popleft()

    def close(self) -> None:
        """Releases the service.

        Messages in flight continue, and their outcomes are not reported.
        """
        self._port.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Message]:
        while True:
            try:
                message = self.receive()
            except NodeGoneError:
                return
            yield message

    def _wait_until(self, ticket: Ticket, timeout: float | None) -> None:
        with self._changed:
            self._wait(lambda: ticket.is_over, timeout)

    def _wait(self, is_there: Callable[[], bool], timeout: float | None) -> None:
        """Reads completions until there is a message or an outcome; the caller has the lock."""
        self._refuse_children()
        until = None if timeout is None else time.monotonic() + timeout
        while not is_there():
            left = None if until is None else max(0.0, until - time.monotonic())
            if not self._read_one(left) and not is_there():
                raise TimeoutError(f"no message within {timeout} s")

    def _read_one(self, timeout: float | None) -> bool:
        """Reads a completion, or waits until another thread has; false if none arrives in time."""
        if self._is_taking:
            return self._changed.wait(timeout)
        self._is_taking = True
        self._changed.release()
        try:
            completion = self._port.wait(timeout)
        finally:
            self._changed.acquire()
            self._is_taking = False
            self._changed.notify_all()
        self._handle_completion(completion)
        return completion is not None

    def _refuse_children(self) -> None:
        """Raises an error in a child process: two processes would corrupt the port."""
        if os.getpid() != self._process:
            raise RuntimeError(
                "port: it belongs to the parent process; attach another port after the fork"
            )

    def _handle_completion(self, completion: Finished | Message | None) -> None:
        if isinstance(completion, Message):
            self._messages.append(completion)
        elif completion is not None:
            ticket = self._under_way.pop(completion.ticket)
            ticket._finish(completion.failure)


class AsyncPort:
    """A `Port` for asyncio: made, used and closed in one event loop.

    `await send(...)` returns when the receiver has the message. `async for` yields messages until
    the node has ended or the port is closed.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        service: int,
        *,
        depth: int = DEPTH,
        send: int = ARENA,
        receive: int = ARENA,
    ) -> None:
        self.service = service
        """The service whose messages it receives."""
        self._loop = asyncio.get_running_loop()
        self._port = _core.Port.attach(path, service, depth=depth, send=send, receive=receive)
        self._under_way: dict[int, asyncio.Future[str | None]] = {}
        self._messages: deque[Message] = deque()
        self._changed = asyncio.Event()
        self._is_open = True
        self._fd = self._port.fileno()
        self._loop.add_reader(self._fd, self._on_readable)
        self._on_readable()

    async def send(
        self,
        dst: int,
        data: Data,
        service: int | None = None,
        *,
        deadline: float | None = None,
        tenant: int = 0,
    ) -> None:
        """Sends a copy of `data` to node `dst`, to the port's own service by default.

        Returns when the receiver has it; raises `SendError` if it fails. Cancelling does not stop
        the message.
        """
        service = self.service if service is None else service
        while True:
            try:
                number, _ = self._port.submit(dst, service, data, deadline=deadline, tenant=tenant)
            except FullError:
                if not self._under_way:
                    raise
                await self._change()
            else:
                break
        over = self._under_way[number] = self._loop.create_future()
        failure = await over
        if failure is not None:
            raise SendError(failure, dst, service)

    def bound(self, size: int, *, tenant: int = 0) -> float | None:
        """Returns the bound of a message of `size` bytes in seconds, as `Port.bound` does."""
        return self._port.bound(size, tenant=tenant)

    async def receive(self) -> Message:
        """Returns the next message."""
        while not self._messages:
            if not self._is_open:
                raise NodeGoneError("the node has ended or the port is closed")
            await self._change()
        return self._messages.popleft()

    def close(self) -> None:
        """Closes the port and releases its service. Messages in flight fail with `node-gone`."""
        self._fail_tickets()
        self._port.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    async def __aiter__(self) -> AsyncIterator[Message]:
        while True:
            try:
                message = await self.receive()
            except NodeGoneError:
                return
            yield message

    async def _change(self) -> None:
        await self._changed.wait()

    def _on_readable(self) -> None:
        """Reads completions, a batch at a time so that other tasks can run."""
        try:
            for _ in range(BATCH):
                completion = self._port.try_next()
                if completion is not None:
                    self._handle_completion(completion)
                elif not self._port.arm():
                    break
            else:
                self._loop.call_soon(self._on_readable_again)
        except NodeGoneError:
            self._fail_tickets()
        self._changed.set()
        self._changed = asyncio.Event()

    def _on_readable_again(self) -> None:
        if self._is_open:
            self._on_readable()

    def _handle_completion(self, completion: Finished | Message) -> None:
        if isinstance(completion, Message):
            self._messages.append(completion)
        else:
            over = self._under_way.pop(completion.ticket)
            if not over.done():
                over.set_result(completion.failure)

    def _fail_tickets(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        self._loop.remove_reader(self._fd)
        for over in self._under_way.values():
            if not over.done():
                over.set_result("node-gone")
        self._under_way.clear()
        self._changed.set()


BATCH = 256
"""Completions that are read before other tasks can run."""
