"""Programs on loopback that checks put beside a server: nginx, Redis, an S3 server.

Standard library only; the programs come from scripts/setup --tests (redis-server, juicefs) and Debian's nginx-light.
"""
import asyncio
import os
import pathlib
import queue
import socket
import subprocess
import threading

import lab

ACCESS_KEY, SECRET_KEY, BUCKET = "gifreel-check", "gifreel-check-secret", "gifreel"


def delayed(port, milliseconds):
    """A port that passes connections on to a port, and their bytes that much later in either direction; the port itself without delay."""
    if not milliseconds:
        return port
    ports = queue.SimpleQueue()

    async def copy(source, sink):
        loop = asyncio.get_running_loop()
        # Timers with the same delay run in the order in which they were set.
        try:
            while data := await source.read(1 << 16):
                loop.call_later(milliseconds / 1000, sink.write, data)
        finally:
            loop.call_later(milliseconds / 1000, sink.close)

    async def forward(reader, writer):
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return writer.close()
        await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer), return_exceptions=True)

    async def serve():
        server = await asyncio.start_server(forward, "127.0.0.1", 0)
        ports.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    threading.Thread(target=lambda: asyncio.run(serve()), daemon=True).start()
    return ports.get()


class Redis(lab.Part):
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
        """Ends the replication."""
        self.primary = None
        self.ask("REPLICAOF NO ONE")

    def replace(self, other):
        """Takes the port of a server that has ended, which gets the own one for its next start."""
        self.ask(f"CONFIG SET port {other.port}")
        self.port, other.port = other.port, self.port


class ObjectStore(lab.Part):
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


class Nginx(lab.Part):
    """nginx with a configuration of its block http, whose own files are all in the folder."""

    def configure(self, http, main):
        user = "user root;" if os.getuid() == 0 else ""
        temporary = " ".join(f"{kind}_temp_path {self.folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        pathlib.Path(self.folder, f"{self.name}.conf").write_text(
            f"daemon off; pid {self.folder}/nginx.pid; error_log stderr warn; {user} {main} http {{ {temporary} {http} }}")

    def command(self):
        return [lab.program("nginx", "apt-get install nginx-light"), "-c", f"{self.folder}/{self.name}.conf"]


class StaticSite(Nginx):
    """One file, tuned for static files: two workers, sendfile, open files kept, no access log."""

    def __init__(self, name, folder, body):
        super().__init__(name, folder)
        site = pathlib.Path(folder, name)
        site.mkdir()
        (site / "file.mp4").write_bytes(body)
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
        return sum(", " in line for line in pathlib.Path(self.requests).read_text(errors="replace").splitlines())
