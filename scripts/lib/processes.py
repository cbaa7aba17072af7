"""Readings from /proc."""
import os
import pathlib

TICKS = os.sysconf("SC_CLK_TCK")


def descriptors(pid):
    """Open descriptors without those of stored renditions, which the cache holds open for later hits in bounded tables."""
    count = 0
    for number in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{number}"
        try:
            # A published file has a link, even if it was opened without a name.
            is_stored = any(folder in os.readlink(path) for folder in ("/objects/", "/staging/#")) and os.stat(path).st_nlink > 0
            count += not is_stored
        except OSError:
            pass  # Closed meanwhile.
    return count


def family(pid):
    """A process and its descendants."""
    found = [pid]
    for each in found:
        try:
            for task in os.listdir(f"/proc/{each}/task"):
                found += map(int, pathlib.Path(f"/proc/{each}/task/{task}/children").read_text().split())
        except OSError:
            pass  # Ended meanwhile.
    return found


def _fields(pid):
    """The fields of proc_pid_stat(5) from the third on; none if the process has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


def cpu(*pids):
    """Seconds of processor time of processes so far, without that of their children."""
    return sum(int(fields[11]) + int(fields[12]) for fields in map(_fields, pids) if fields) / TICKS


def session_cpu(session):
    """The processor time in seconds of the processes in a session, with those that have ended and were waited for."""
    found = [_fields(name) for name in os.listdir("/proc") if name.isdigit()]
    # utime, stime, cutime and cstime.
    return sum(sum(map(int, fields[11:15])) for fields in found if fields and int(fields[3]) == session) / TICKS


def memory(pid, name, file="status"):
    """A line of /proc/PID/status, or of another file there, in bytes; 0 if it is missing or the process has ended."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/{file}").read_text().splitlines()
        return next((int(line.split()[1]) << 10 for line in lines if line.startswith(name + ":")), 0)
    except OSError:
        return 0
