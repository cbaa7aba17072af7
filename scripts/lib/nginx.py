"""nginx on loopback. Needs Debian's nginx-light."""

import os
import pathlib
import signal
import socket
import subprocess
import time

import lab
import processes


def configuration(folder, http, main=""):
    """A configuration whose own files are all in a folder."""
    user = "user root;" if os.getuid() == 0 else ""
    temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    return f"daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.errors warn; {user} {main} http {{ {temporary} {http} }}"


def program():
    return lab.program("nginx", "apt-get install nginx-light")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Nginx:
    """One file, tuned for static files: two workers, sendfile, open files kept, no access log. It ends with the block."""

    def __init__(self, folder, body):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(mode=0o755, exist_ok=True)
        (self.folder / "file.mp4").write_bytes(body)
        self.port = free_port()
        (self.folder / "conf").write_text(configuration(folder, f"""
            types {{ video/mp4 mp4; }}
            access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 100000000;
            open_file_cache max=1000 inactive=60s; open_file_cache_valid 60s; open_file_cache_min_uses 1;
            server {{ listen 127.0.0.1:{self.port} reuseport; root {folder}; }}
            """, "worker_processes 2; worker_rlimit_nofile 20000; events { worker_connections 8192; }"))
        self.process = subprocess.Popen([program(), "-c", self.folder / "conf"], stderr=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise SystemExit("nginx does not start: " + (self.folder / "nginx.errors").read_text())
                time.sleep(0.02)

    def url(self, path="/file.mp4"):
        return f"http://127.0.0.1:{self.port}{path}"

    def cpu(self):
        return processes.cpu(*processes.family(self.process.pid))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)
