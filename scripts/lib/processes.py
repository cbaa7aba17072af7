"""What /proc tells of a process."""
import os


def descriptors(pid):
    """Open descriptors but those of stored renditions, which the cache keeps open for the hits to come, in bounded tables."""
    count = 0
    for number in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{number}"
        try:
            # One that was published has a name, whatever it was called when it was opened.
            is_stored = any(place in os.readlink(path) for place in ("/objects/", "/staging/#")) and os.stat(path).st_nlink > 0
            count += not is_stored
        except OSError:
            pass  # Closed meanwhile.
    return count
