"""Readings from /proc."""
import os


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


def session_cpu(session):
    """The processor time in seconds of the processes in a session, with those that have ended and were waited for."""
    ticks = 0
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue  # Ended meanwhile.
        if int(fields[3]) == session:
            # utime, stime, cutime and cstime of proc_pid_stat(5).
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")
