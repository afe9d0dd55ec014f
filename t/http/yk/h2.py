# SPDX-License-Identifier: Apache-2.0
"""As much HTTP/2 as a test needs to hold streams in its hands: open several on
one line, give one up, see which are answered. Header fields are written plain;
of an answer's only the status 200 is recognised, which is one byte."""
import socket
import struct
import threading

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
END_STREAM, END_HEADERS, ACK = 1, 4, 1
CANCEL = 8
STATUS_200 = 0x88


def frame(kind, flags, stream, payload=b""):
    return (struct.pack(">I", len(payload))[1:]
            + struct.pack(">BBI", kind, flags, stream) + payload)


def field(name, value):
    """Literal, not indexed, no Huffman: fits below 127 bytes each."""
    parts = b"\0"
    for text in (name.encode(), value.encode()):
        parts += bytes([len(text)]) + text
    return parts


class Line:
    """One connection, by prior knowledge."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.settimeout(60)
        self.next, self.streams = 1, {}
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                            + frame(SETTINGS, 0, 0))
        threading.Thread(target=self._read, daemon=True).start()

    def get(self, path):
        """Opens a stream; its number."""
        stream, self.next = self.next, self.next + 2
        self.streams[stream] = {"ok": None, "body": b"", "ended": False}
        head = b"".join(field(name, value) for name, value in (
            (":method", "GET"), (":scheme", "http"), (":path", path),
            (":authority", "x")))
        self.socket.sendall(frame(HEADERS, END_STREAM | END_HEADERS, stream,
                                  head))
        return stream

    def give_up(self, stream):
        self.socket.sendall(frame(RST_STREAM, 0, stream,
                                  struct.pack(">I", CANCEL)))

    def close(self):
        # not close(): the reader's thread still has it in hand
        self.socket.shutdown(socket.SHUT_RDWR)

    def ended(self, stream):
        return self.streams[stream]["ended"]

    def ok(self, stream):
        return self.streams[stream]["ok"]

    def _take(self, n):
        got = b""
        while len(got) < n:
            part = self.socket.recv(n - len(got))
            if not part:
                raise EOFError
            got += part
        return got

    def _read(self):
        try:
            while True:
                head = self._take(9)
                kind, flags, stream = struct.unpack(">BBI", head[3:])
                self._frame(kind, flags, stream,
                            self._take(int.from_bytes(head[:3], "big")))
        except (OSError, EOFError):
            for one in self.streams.values():
                one["ended"] = True

    def _frame(self, kind, flags, stream, payload):
        one = self.streams.get(stream)
        if kind in (SETTINGS, PING) and not flags & ACK:
            self.socket.sendall(frame(kind, ACK, 0,
                                      payload if kind == PING else b""))
        elif kind == HEADERS and one["ok"] is None:
            one["ok"] = payload[0] == STATUS_200
        elif kind == DATA:
            one["body"] += payload
        elif kind == RST_STREAM:
            one["ended"] = True
        if kind in (DATA, HEADERS) and flags & END_STREAM:
            one["ended"] = True
