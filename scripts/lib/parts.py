"""Programs on loopback: nginx, Redis, an S3 server, nodes of a cluster, and links with a delay.

Each part has a fixed port, so that it can be stopped and started again at the same address. Standard library only; the programs
come from scripts/setup --tests (redis-server, juicefs) and Debian's nginx-light.
"""
import asyncio
import contextlib
import multiprocessing
import os
import signal
import socket
import subprocess
import time

import lab

ACCESS_KEY, SECRET_KEY, BUCKET = "gifreel-check", "gifreel-check-secret", "gifreel"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Part:
    """A process that listens on a port. Its class has `command`. As a context manager it runs during the block."""

    # Variables of its environment.
    environment = {}

    def __init__(self, name, folder):
        self.name, self.folder, self.port = name, folder, free_port()
        self.process = None

    def start(self):
        with open(f"{self.folder}/{self.name}.log", "ab") as log:
            self.process = subprocess.Popen(self.command(), env={**os.environ, **self.environment}, stdout=log, stderr=log)
        self.wait_until(self.listens, 30)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def url(self, target=""):
        return f"http://127.0.0.1:{self.port}{target}"

    def listens(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def wait_until(self, condition, limit):
        end = time.monotonic() + limit
        while not condition():
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{self.name} does not start:\n{self.log()[-2000:]}")
            time.sleep(0.02)

    def log(self):
        with open(f"{self.folder}/{self.name}.log", errors="replace") as log:
            return log.read()

    def stop(self, signal_number=signal.SIGTERM, limit=60):
        """Ends the process and returns its exit code; kills it after the limit."""
        if self.process is None or self.process.poll() is not None:
            return self.process.returncode if self.process else None
        self.process.send_signal(signal_number)
        try:
            return self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Redis(Part):
    def __init__(self, name, folder):
        super().__init__(name, f"{folder}/{name}")
        os.makedirs(self.folder, exist_ok=True)
        self.primary = None

    def command(self):
        redis = lab.program("redis-server", "scripts/setup --tests installs it")
        follows = ["--replicaof", f"127.0.0.1 {self.primary}"] if self.primary else []
        return [
            redis, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--dir", self.folder, *follows]

    def ask(self, command):
        """The first part of the reply to a command without spaces in its words."""
        with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
            connection.sendall(command.encode() + b"\r\n")
            return connection.recv(1 << 16).decode(errors="replace")

    def follow(self, port):
        """Starts as a replica of the server at a port, and waits until it has that server's data."""
        self.primary = port
        self.start()
        self.wait_until(lambda: "master_link_status:up" in self.ask("INFO replication"), 30)

    def promote(self):
        self.primary = None
        self.ask("REPLICAOF NO ONE")


class ObjectStore(Part):
    """The S3 front of MinIO, as juicefs contains it, on a local folder."""

    environment = {"MINIO_ROOT_USER": ACCESS_KEY, "MINIO_ROOT_PASSWORD": SECRET_KEY}

    def __init__(self, name, folder):
        super().__init__(name, folder)
        self.juicefs = lab.program("juicefs", "scripts/setup --tests installs it")
        self.metadata = f"sqlite3://{folder}/objects.db"
        subprocess.run(
            [self.juicefs, "format", "--storage", "file", "--bucket", f"{folder}/objects/", self.metadata, "check"],
            check=True, capture_output=True)

    def command(self):
        return [
            self.juicefs, "gateway", "--multi-buckets", "--no-banner", "--no-usage-report", "--object-meta",
            "--cache-dir", f"{self.folder}/objects-cache", self.metadata, f"127.0.0.1:{self.port}"]

    def create_bucket(self):
        subprocess.run(
            ["curl", "-sf", "--retry", "20", "--retry-connrefused", "--retry-delay", "1", "--retry-all-errors",
             "--aws-sigv4", "aws:amz:us-east-1:s3", "--user", f"{ACCESS_KEY}:{SECRET_KEY}", "-X", "PUT",
             self.url(f"/{BUCKET}")],
            check=True)


class Node(Part):
    """A `gifreel serve` that may fetch from loopback."""

    def __init__(self, name, folder, gifreel, settings):
        super().__init__(name, folder)
        self.gifreel = gifreel
        self.settings = {
            "server.port": self.port, "cache.dir": f"{folder}/{name}", "cache.min_free_bytes": "0B", "cluster.node": name,
            "server.trusted_proxies": "127.0.0.1", "sources.allow_private": "127.0.0.1", "sources.ports": "1-65535",
            "admin.token": lab.TOKEN, "log.level": "notice", **settings,
        }

    def command(self):
        flags = [word for name, value in self.settings.items() for word in ("--set", f"{name}={value}")]
        return [self.gifreel, "serve", *flags]

    def start(self):
        super().start()
        self.wait_until(self.is_ready, 30)

    def is_ready(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as connection:
            connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            return connection.recv(64).startswith(b"HTTP/1.1 200")
        return False


class Nginx(Part):
    """nginx with a configuration of its block http, whose own files are all in the folder."""

    def configure(self, http, main):
        user = "user root;" if os.getuid() == 0 else ""
        temporary = " ".join(f"{kind}_temp_path {self.folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        with open(f"{self.folder}/{self.name}.conf", "w") as file:
            file.write(
                f"daemon off; pid {self.folder}/nginx.pid; error_log stderr warn; {user} {main} http {{ {temporary} {http} }}")

    def command(self):
        return [lab.program("nginx", "apt-get install nginx-light"), "-c", f"{self.folder}/{self.name}.conf"]


class StaticSite(Nginx):
    """One file, tuned for static files: two workers, sendfile, open files kept, no access log."""

    def __init__(self, name, folder, body):
        super().__init__(name, folder)
        site = f"{folder}/{name}"
        os.mkdir(site)
        with open(f"{site}/file.mp4", "wb") as file:
            file.write(body)
        self.configure(f"""
            types {{ video/mp4 mp4; }}
            access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 100000000;
            open_file_cache max=1000 inactive=60s; open_file_cache_valid 60s; open_file_cache_min_uses 1;
            server {{ listen 127.0.0.1:{self.port} reuseport; root {site}; }}
            """, "worker_processes 2; worker_rlimit_nofile 20000; events { worker_connections 8192; }")

    def url(self, target="/file.mp4"):
        return super().url(target)


class Balancer(Nginx):
    """nginx with config/nginx/cluster.conf, whose addresses are replaced by those of the nodes."""

    def __init__(self, name, folder, nodes):
        super().__init__(name, folder)
        site = (lab.ROOT / "config/nginx/cluster.conf").read_text()
        for number, node in enumerate(nodes, 1):
            site = site.replace(f"server node-{number}:8080", f"server 127.0.0.1:{node.port}")
        site = site.replace("listen 8080;", f"listen 127.0.0.1:{self.port};")
        self.requests = f"{folder}/nginx.requests"
        self.configure(f"""
            log_format upstreams '$request_method $status $upstream_addr $upstream_status $request_uri';
            access_log {self.requests} upstreams;
            {site}""", "worker_processes 1; events { worker_connections 1024; }")

    def retried(self):
        """Requests that nginx sent to more than one node."""
        with open(self.requests, errors="replace") as file:
            return sum(", " in line for line in file)


class Link:
    """A TCP port that forwards to another one and delays what clients send."""

    def __init__(self, target, milliseconds=0):
        self.port = 0
        self.milliseconds = milliseconds
        self.process = None
        self.point(target)

    def point(self, target):
        """Ends all connections, and forwards new ones to another port."""
        self.stop()
        listener = socket.create_server(("127.0.0.1", self.port), backlog=512)
        self.port = listener.getsockname()[1]
        # In a separate process, because the threads of the load would delay its timers.
        self.process = multiprocessing.get_context("fork").Process(
            target=_forward, args=(listener, target, self.milliseconds / 1000), daemon=True)
        self.process.start()
        listener.close()

    def stop(self):
        """Ends all connections, and refuses new ones."""
        if self.process:
            self.process.terminate()
            self.process.join(5)


def _forward(listener, target, delay):
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    async def copy(reader, writer, delay):
        loop = asyncio.get_running_loop()
        pending = asyncio.Queue()

        async def send():
            while True:
                due, chunk = await pending.get()
                await asyncio.sleep(max(0, due - loop.time()))
                if not chunk:
                    break
                writer.write(chunk)
                await writer.drain()

        sender = asyncio.create_task(send())
        with contextlib.suppress(OSError):
            while chunk := await reader.read(1 << 16):
                pending.put_nowait((loop.time() + delay, chunk))
        pending.put_nowait((loop.time() + delay, b""))
        with contextlib.suppress(OSError):
            await sender
        writer.close()

    async def serve(reader, writer):
        try:
            other_reader, other_writer = await asyncio.open_connection("127.0.0.1", target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy(reader, other_writer, delay), copy(other_reader, writer, 0))

    async def run():
        server = await asyncio.start_server(serve, sock=listener)
        await server.serve_forever()

    asyncio.run(run())
