"""scripts/bench media: conversions, one process each."""
import os
import resource
import statistics
import subprocess
import tempfile

import lab


def convert(gifreel, file, target):
    """Seconds of processor time and bytes of a conversion; None if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run([gifreel, "convert", file, target], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode:
        print(f"      {ended.stderr.strip()[-200:]}")
        return None
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, os.path.getsize(target)


def media(options):
    """Bytes and processor time of `gifreel convert`, medians of rounds in turn with another executable, and the geometric means of the
    ratios to that."""
    programs = [options.gifreel, *([os.path.abspath(options.against)] if options.against else [])]
    with tempfile.TemporaryDirectory() as folder:
        for format in options.formats.split(","):
            ratios = []
            for file in options.files:
                rounds = [[convert(program, file, f"{folder}/out.{format}") for program in programs] for _ in range(options.rounds)]
                if any(None in each for each in rounds):
                    lab.report(False, f"{format:5} {os.path.basename(file)}")
                    continue
                found = [[statistics.median(each[at][part] for each in rounds) for part in (0, 1)] for at in range(len(programs))]
                seconds, size = found[0]
                other = ""
                if options.against:
                    ratios.append((seconds / max(found[1][0], 1e-3), size / found[1][1]))
                    other = f", {ratios[-1][0]:.2f} of the time and {ratios[-1][1]:.3f} of the bytes of the other"
                print(
                    f"      {format:5} {os.path.basename(file):40.40} {os.path.getsize(file):>10,} → {size:>10,.0f} bytes, {seconds:.2f} s{other}",
                    flush=True)
            if ratios:
                time, size = (statistics.geometric_mean(each) for each in zip(*ratios))
                print(f"      {format:5} geometric mean of {len(ratios)} files: {time:.2f} of the time, {size:.3f} of the bytes")
