"""An nginx for comparison: one file, on a free loopback port, tuned for static files.

Two workers, sendfile, open files kept, no access log. Needs Debian's nginx-light.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import service


class Nginx:
    def __init__(self, body, more=""):
        program = service.program("nginx", "nginx-light")
        self.folder = tempfile.mkdtemp(prefix="gifreel-nginx-")
        os.chmod(self.folder, 0o755)
        with open(self.folder + "/file.mp4", "wb") as file:
            file.write(body)
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port = one.getsockname()[1]
        kept = " ".join(
            f"{kind}_temp_path {self.folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        user = "user root;" if os.getuid() == 0 else ""
        with open(self.folder + "/conf", "w") as file:
            file.write(f"""
                worker_processes 2; daemon off; pid {self.folder}/pid; error_log {self.folder}/errors warn; {user}
                worker_rlimit_nofile 20000;
                events {{ worker_connections 8192; }}
                http {{
                    types {{ video/mp4 mp4; }}
                    access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 100000000;
                    open_file_cache max=1000 inactive=60s; open_file_cache_valid 60s; open_file_cache_min_uses 1;
                    {kept} {more}
                    server {{ listen 127.0.0.1:{self.port} reuseport; root {self.folder}; }}
                }}""")
        self.process = subprocess.Popen([program, "-c", self.folder + "/conf"], stderr=subprocess.DEVNULL)
        self.pid = self.process.pid
        end = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise SystemExit("nginx does not start: " + open(self.folder + "/errors").read())
                time.sleep(0.02)

    def url(self, path="/file.mp4"):
        return f"http://127.0.0.1:{self.port}{path}"

    def cpu(self):
        return service.cpu_of(self.pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)
        shutil.rmtree(self.folder, ignore_errors=True)
