"""A program that sends to a host in one of many ways; it knows nothing of CAPTON.

Usage: program.py WAY HOST PORT BYTES. Sends words that the receiver can foretell, and prints
"done".
"""

import array
import ctypes
import errno
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

HOST, PORT = sys.argv[2], int(sys.argv[3])
BYTES = int(sys.argv[4])


def words(size: int, start: int = 0) -> bytes:
    """Bytes that say where in a stream they are."""
    numbers = range(start // 4, (start + size) // 4)
    return array.array("I", [k * 2654435761 & 0xFFFFFFFF for k in numbers]).tobytes()


def connect() -> socket.socket:
    return socket.create_connection((HOST, PORT))


def blocking() -> None:
    connect().sendall(words(BYTES))


def sandboxed() -> None:
    """Allows no system calls but its own, as sshd does: others end the process."""
    forbidden = 39, 55  # getpid and getsockopt of x86-64
    load, equal, give = 0x20, 0x15, 0x06  # of BPF
    allow, kill = 0x7FFF0000, 0x80000000
    program = [(load, 0, 0, 0)]
    for number in forbidden:
        program += [(equal, 0, 1, number), (give, 0, 0, kill)]
    program.append((give, 0, 0, allow))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    head = ctypes.create_string_buffer(
        struct.pack("HxxxxxxQ", len(program), ctypes.addressof(code))
    )
    stream, data = connect(), words(BYTES)
    library = ctypes.CDLL(None, use_errno=True)
    assert library.prctl(38, 1, 0, 0, 0) == 0  # no new privileges
    assert library.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(head)), 0, 0) == 0
    stream.sendall(data)


def waits() -> None:
    """Stays for a while after it has sent."""
    stream = connect()
    stream.sendall(words(BYTES))
    time.sleep(4)


def pieces() -> None:
    stream, data = connect(), words(BYTES)
    for at in range(0, BYTES, 20_000):
        stream.sendall(data[at : at + 20_000])


def vectors() -> None:
    stream, data = connect(), memoryview(words(BYTES))
    done = 0
    while done < BYTES:
        parts = [data[at : at + 7_000] for at in range(done, min(done + 700_000, BYTES), 7_000)]
        done += os.writev(stream.fileno(), parts)


def messages() -> None:
    stream, data = connect(), memoryview(words(BYTES))
    assert stream.sendmsg([data[:100_000], data[100_000:]]) == BYTES


def files() -> None:
    stream = connect()
    with tempfile.TemporaryFile() as file:
        file.write(words(BYTES))
        file.flush()
        done = 0
        while done < BYTES:
            done += os.sendfile(stream.fileno(), file.fileno(), done, BYTES - done)


def nonblocking(wait) -> None:
    stream, data = connect(), memoryview(words(BYTES))
    stream.setblocking(False)
    done = idle = 0
    while done < BYTES:
        try:
            done += stream.send(data[done:])
        except BlockingIOError:
            idle += 1
            wait(stream)
    # A readiness that is not true would make it turn without end.
    assert idle < 2_000, idle
    stream.setblocking(True)


def polling() -> None:
    poller = select.poll()

    def wait(stream: socket.socket) -> None:
        poller.register(stream, select.POLLOUT)
        assert poller.poll(20_000), "nothing in 20 s"

    nonblocking(wait)


def selecting() -> None:
    nonblocking(lambda stream: select.select([], [stream], [], 20))


def epolling(flags: int) -> None:
    epoll = select.epoll()
    known = set()

    def wait(stream: socket.socket) -> None:
        if stream.fileno() not in known:
            known.add(stream.fileno())
            epoll.register(stream, select.EPOLLIN | select.EPOLLOUT | flags)
        elif flags & select.EPOLLONESHOT:
            epoll.modify(stream, select.EPOLLIN | select.EPOLLOUT | flags)
        events = epoll.poll(20)
        assert events, "nothing in 20 s"
        assert all(event & select.EPOLLOUT for _, event in events), events

    nonblocking(wait)


def registered_before() -> None:
    """As event loops do: registered for everything, edges, before there is anything to send."""
    stream, data = connect(), memoryview(words(BYTES))
    stream.setblocking(False)
    epoll = select.epoll()
    epoll.register(stream, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
    done = 0
    while done < BYTES:
        events = epoll.poll(20)
        assert events, "nothing in 20 s"
        try:
            while done < BYTES:
                done += stream.send(data[done:])
        except BlockingIOError:
            pass


def threads() -> None:
    """Each thread has a connection; the receiver takes four."""
    all_of_them = [threading.Thread(target=blocking) for _ in range(4)]
    for thread in all_of_them:
        thread.start()
    for thread in all_of_them:
        thread.join()


def in_turn() -> None:
    """Connections that are closed and opened again, so that numbers recur; there are 20."""
    for _ in range(20):
        with connect() as stream:
            stream.sendall(words(BYTES))
        time.sleep(0.05)


def forks() -> None:
    """One connection, used before a fork, by the child, and by the parent afterwards."""
    stream, third = connect(), BYTES // 12 * 4
    stream.sendall(words(third))
    child = os.fork()
    if child == 0:
        stream.sendall(words(third, third))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    stream.sendall(words(BYTES - 2 * third, 2 * third))


def executes() -> None:
    """The other half is sent by a program that is given the connection."""
    stream, half = connect(), BYTES // 8 * 4
    stream.sendall(words(half))
    code = (
        "import os, sys; data = memoryview(sys.stdin.buffer.read()); done = 0\n"
        "while done < len(data): done += os.write(int(sys.argv[1]), data[done:])"
    )
    fd = stream.fileno()
    argv = [sys.executable, "-c", code, str(fd)]
    subprocess.run(argv, pass_fds=[fd], input=words(BYTES - half, half), check=True)


def half_closes() -> None:
    stream = connect()
    stream.sendall(words(BYTES))
    stream.shutdown(socket.SHUT_WR)
    assert stream.makefile("rb").read() == b"all of it"


def times_out() -> None:
    """The peer never reads: the call ends when its time is over."""
    stream = connect()
    timeout = (300_000 << 64).to_bytes(16, "little")
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeout)
    started, done = time.monotonic(), 0
    try:
        while time.monotonic() < started + 20:
            done += stream.send(b"\0" * BYTES)
            started = time.monotonic()
    except BlockingIOError:
        waited = time.monotonic() - started
        assert done > 0 and 0.25 < waited < 10, (done, waited)
        return
    raise AssertionError("nothing ended the call")


def is_interrupted() -> None:
    """A signal ends a call that is held."""
    stream = connect()

    def ring(_number: int, _frame: object) -> None:
        raise InterruptedError(errno.EINTR, "rung")

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        stream.sendall(words(BYTES))
    except InterruptedError:
        return
    raise AssertionError("the call was not interrupted")


WAYS = {
    "waits": waits,
    "blocking": blocking,
    "pieces": pieces,
    "vectors": vectors,
    "messages": messages,
    "files": files,
    "poll": polling,
    "select": selecting,
    "epoll": lambda: epolling(0),
    "epoll-edge": lambda: epolling(select.EPOLLET),
    "epoll-once": lambda: epolling(select.EPOLLONESHOT),
    "epoll-before": registered_before,
    "threads": threads,
    "in-turn": in_turn,
    "forks": forks,
    "executes": executes,
    "half-closes": half_closes,
    "times-out": times_out,
    "is-interrupted": is_interrupted,
    "sandboxed": sandboxed,
}

WAYS[sys.argv[1]]()
print("done")
