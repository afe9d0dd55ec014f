# SPDX-License-Identifier: Apache-2.0
"""What somebody who waits costs, seen and not assumed: some hundreds are made
to wait, and the memory they took is divided by their number.
"""
import contextlib
import glob
import http.client
import os
import socket
import statistics
import time

PEOPLE = 1500
REQUEST = (b"POST /yoyaku/slots/demo/holds HTTP/1.1\r\nHost: tickets.example\r\n"
           b"User-Agent: Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101\r\n"
           b"Accept: application/json\r\nAccept-Encoding: gzip, deflate, br\r\n"
           b"Content-Type: application/json\r\nCookie: yoyaku_order="
           b"AAAAAAAAAAAAAAAAAAAAAAAAAAA\r\nContent-Length: 43\r\n\r\n"
           b'{"places":["A-12"],"tariff":"standard"}    ')
# From one address only so many may come without coming back.
ROOM_ADDRESS = 150

ROOM = """
YoyakuKeyFile "{key}"
# nothing is there: who waits does not get so far
<Location "/load-room">
    YoyakuWaitingRoom load active=1 rate=1/s
</Location>
"""


def kernel_bytes():
    """Of the kernel's small objects, without what remembers closed lines;
    from /proc/meminfo for who may not see them one by one."""
    try:
        with open("/proc/slabinfo") as file:
            rows = [line.split() for line in file][2:]
        return sum(int(row[1]) * int(row[3]) for row in rows
                   if not row[0].startswith("tw_sock"))
    except (OSError, ValueError):
        with open("/proc/meminfo") as file:
            return next(int(line.split()[1]) * 1024 for line in file
                        if line.startswith("Slab:"))


def _in_backlog(people):
    """Bytes each: their requests have come and nobody accepts."""
    with socket.socket() as listener, contextlib.ExitStack() as lines:
        listener.bind(("127.0.0.1", 0))
        listener.listen(people)
        before = kernel_bytes()
        for _ in range(people):
            line = lines.enter_context(socket.socket())
            line.settimeout(5)
            line.connect(listener.getsockname())
            line.sendall(REQUEST)
        lines.close()  # the other end is the visitor's own
        time.sleep(0.05)
        return (kernel_bytes() - before) / people


def backlog_bytes(people=PEOPLE, looks=3):
    """The kernel's own, for one who waits to be accepted."""
    with open("/proc/sys/net/core/somaxconn") as file:
        people = min(people, int(file.read()))
    try:
        return round(statistics.median(_in_backlog(people)
                                       for _ in range(looks)))
    except OSError:
        return None


def room_conf(key_file):
    """For httpd; makes the key."""
    with open(key_file, "w") as file:
        os.chmod(key_file, 0o600)
        file.write("k" * 64)
    return ROOM.format(key=key_file)


def _blocks(folder):
    """Bytes on which something was written: state files have holes."""
    return sum(os.stat(path).st_blocks * 512
               for path in glob.glob(os.path.join(folder, "**"),
                                     recursive=True) if os.path.isfile(path))


def _comes(port, n):
    """A visitor without a number. @return 1 when he got one"""
    line = http.client.HTTPConnection(
        "127.0.0.1", port, timeout=10,
        source_address=(f"127.0.1.{1 + n // ROOM_ADDRESS}", 0))
    try:
        line.request("GET", "/load-room", headers={"Accept": "text/html"})
        answer = line.getresponse()
        answer.read()
        return answer.status == 503 and \
            answer.headers.get("Set-Cookie") is not None
    finally:
        line.close()


def room_bytes(port, state_folder, people=PEOPLE):
    """Of shared state, for one who waits in a room; None when it let them
    in or knew no room."""
    try:
        _comes(port, 0)  # the room itself, and the one who goes in
        before = _blocks(state_folder)
        numbers = sum(_comes(port, n) for n in range(people))
    except (OSError, http.client.HTTPException):
        return None
    grown = _blocks(state_folder) - before
    return round(grown / numbers) if numbers > people // 2 else None


def seen(stand):
    """Of a stand whose load is over."""
    return {"people": PEOPLE, "backlog_bytes": backlog_bytes(),
            "room_bytes": room_bytes(stand.httpd.port, stand.httpd.state)}
