"""Requests that Gifreel and nginx must answer alike, for the same bytes: status, fields that matter, body, and persistence.

Only what RFC 9110 and 9112 leave no choice about, or where nginx chose as we did; each case is raw bytes, so that what no
client library would send is sent too. In a case, {tag} and {date} stand for the server's own validators.
"""

import hashlib
import re
import socket

import service
from nginx import Nginx

GET = "GET {path} HTTP/1.1\r\nHost: h\r\n"
# Name, request, number of expected answers.
CASES = [
    ("plain", GET + "\r\n"), ("head", GET.replace("GET", "HEAD") + "\r\n"),
    ("old version", "GET {path} HTTP/1.0\r\n\r\n"),
    ("old version, keep-alive", "GET {path} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
    ("old version, with host", "GET {path} HTTP/1.0\r\nHost: h\r\n\r\n"),
    ("close", GET + "Connection: close\r\n\r\n"), ("close in other letters", GET + "connection: CLOSE\r\n\r\n"),
    ("absolute form", "GET http://h{path} HTTP/1.1\r\nHost: h\r\n\r\n"),
    ("empty line before", "\r\n" + GET + "\r\n"), ("blanks around values", GET + "Range:   bytes=0-3  \r\n\r\n"),
    ("names in any case", GET.replace("Host", "hOsT") + "rAnGe: bytes=0-3\r\n\r\n"),
    ("not there", "GET /nothing-here HTTP/1.1\r\nHost: h\r\n\r\n"),
    ("POST to a file", "POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab"),
    ("POST in chunks to a file", "POST {path} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"),
    ("first byte", GET + "Range: bytes=0-0\r\n\r\n"), ("first two", GET + "Range: bytes=0-1\r\n\r\n"),
    ("from the start", GET + "Range: bytes=0-\r\n\r\n"), ("from within", GET + "Range: bytes=100-\r\n\r\n"),
    ("last byte", GET + "Range: bytes=-1\r\n\r\n"), ("more than all at the end", GET + "Range: bytes=-99999999\r\n\r\n"),
    ("beyond the end", GET + "Range: bytes=500-99999999\r\n\r\n"),
    ("past the end", GET + "Range: bytes=99999999-\r\n\r\n"), ("nothing at the end", GET + "Range: bytes=-0\r\n\r\n"),
    ("another unit", GET + "Range: lines=0-1\r\n\r\n"),
    ("range of HEAD of all", GET.replace("GET", "HEAD") + "Range: lines=0-1\r\n\r\n"),
    ("same tag", GET + "If-None-Match: {tag}\r\n\r\n"), ("same tag, weak", GET + "If-None-Match: W/{tag}\r\n\r\n"),
    ("tag in a list", GET + 'If-None-Match: "a", {tag}\r\n\r\n'), ("any tag", GET + "If-None-Match: *\r\n\r\n"),
    ("other tag", GET + 'If-None-Match: "a"\r\n\r\n'),
    ("tag beats date", GET + 'If-None-Match: "a"\r\nIf-Modified-Since: {date}\r\n\r\n'),
    ("same tag, HEAD", GET.replace("GET", "HEAD") + "If-None-Match: {tag}\r\n\r\n"),
    ("same date", GET + "If-Modified-Since: {date}\r\n\r\n"),
    ("older date", GET + "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n"),
    ("later date", GET + "If-Modified-Since: Sun, 06 Nov 2089 08:49:37 GMT\r\n\r\n"),
    ("no date", GET + "If-Modified-Since: yesterday\r\n\r\n"),
    ("must match, does", GET + "If-Match: {tag}\r\n\r\n"), ("must match, does not", GET + 'If-Match: "a"\r\n\r\n'),
    ("must match anything", GET + "If-Match: *\r\n\r\n"),
    ("must be unmodified, is not", GET + "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n"),
    ("must be unmodified, is", GET + "If-Unmodified-Since: {date}\r\n\r\n"),
    ("range if the tag is the same", GET + "Range: bytes=0-3\r\nIf-Range: {tag}\r\n\r\n"),
    ("range if the tag is another", GET + 'Range: bytes=0-3\r\nIf-Range: "a"\r\n\r\n'),
    ("range if the date is another", GET + "Range: bytes=0-3\r\nIf-Range: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n"),
    ("same tag beats range", GET + "Range: bytes=0-3\r\nIf-None-Match: {tag}\r\n\r\n"),
    ("two in one", GET + "Range: bytes=0-0\r\n\r\n" + GET + "Range: bytes=1-1\r\n\r\n", 2),
    ("no host", "GET {path} HTTP/1.1\r\n\r\n"), ("two hosts", GET + "Host: i\r\n\r\n"),
    ("a later major version", "GET {path} HTTP/2.0\r\nHost: h\r\n\r\n"), ("no version there is", "GET {path} HTTX/1.1\r\n\r\n"),
    ("no method", " {path} HTTP/1.1\r\nHost: h\r\n\r\n"),
    ("two lengths", "POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nab"),
    ("length and chunks", "POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("no length", "POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: two\r\n\r\n"),
    ("negative length", "POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: -2\r\n\r\n"),
    ("target too long", "GET /" + "a" * 40000 + " HTTP/1.1\r\nHost: h\r\n\r\n"),
]


def nginx(path, arguments):
    """Sends each request to both servers and compares the answers."""
    with service.Service(path) as gifreel:
        path, body = gifreel.upload(service.noise_gif(64, 64, 10))
        with Nginx(body) as other:
            ours, theirs = _Server(gifreel.port, path), _Server(other.port, "/file.mp4")
            different = 0
            for name, text, *count in CASES:
                mine, yours = (server.ask(text, *count) for server in (ours, theirs))
                if mine != yours:
                    different += 1
                    print(f"{name}: {mine}, nginx {yours}")
    print(f"{len(CASES) - different} of {len(CASES)} requests are answered as nginx answers them")
    return different == 0


class _Server:
    def __init__(self, port, path):
        self.port, self.path = port, path
        _, fields, _ = self.exchange(GET + "Connection: close\r\n\r\n", {"tag": "", "date": ""})[0]
        self.validators = {"tag": fields["etag"], "date": fields["last-modified"]}

    def ask(self, text, count=1):
        """The compared parts of each answer, and whether the connection persists after the last one."""
        answers = self.exchange(text, self.validators, count)
        told = []
        for status, fields, body in answers[:count]:
            good = status < 400
            told.append((
                status, fields.get("content-length") if good and status != 304 else None, fields.get("content-range"),
                hashlib.sha256(body).hexdigest()[:8] if good else None))
        goes_on = len(answers) > count
        # After an error a server may do either.
        return told, goes_on if told and told[-1][0] < 400 else None

    def exchange(self, text, validators, count=1):
        """The answers to a request and to a second one behind it, which shows whether the connection persists."""
        request = text.replace("{path}", self.path)
        for name, value in validators.items():
            request = request.replace("{" + name + "}", value)
        methods = [line.split(" ")[0] for line in request.split("\r\n") if "HTTP/" in line] + ["HEAD"]
        answers = []
        with socket.create_connection(("127.0.0.1", self.port), 10) as connection:
            stream = connection.makefile("rb")
            connection.sendall(request.encode())
            try:
                for index in range(count + 1):
                    if index == count:
                        connection.sendall(GET.replace("GET", "HEAD").replace("{path}", self.path).encode() + b"\r\n")
                    answers.append(self.read(stream, methods[index] if index < count else "HEAD"))
            except (OSError, EOFError):
                pass
        return answers

    def read(self, stream, method):
        line = stream.readline().decode("latin-1")
        found = re.match(r"HTTP/1\.[01] (\d{3})", line)
        if not found:
            raise EOFError
        status = int(found[1])
        fields = {}
        while (line := stream.readline().decode("latin-1").strip()):
            name, _, value = line.partition(":")
            fields[name.lower()] = value.strip()
        if method == "HEAD" or status in (204, 304):
            return status, fields, b""
        length = fields.get("content-length")
        return status, fields, stream.read(int(length)) if length else stream.read()
