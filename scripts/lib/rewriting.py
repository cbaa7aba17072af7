"""Rewrites a GIF as APNG and as WebP without loss. Needs Pillow with WebP, numpy and a built gifreel."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy
    from PIL import Image
except ImportError as error:
    sys.exit(f"{error.name} is missing: python3 -m pip install pillow numpy")


def composed(gifreel, path, folder):
    """The composed frames and their coded delays in milliseconds."""
    target = tempfile.mkdtemp(dir=folder)
    subprocess.run([gifreel, "frames", path, target], check=True)
    with open(os.path.join(target, "meta.json")) as file:
        meta = json.load(file)
    frames = []
    for index in range(len(meta["delays_ms"])):
        name = os.path.join(target, f"frame_{index:03}.rgba")
        frames.append(numpy.fromfile(name, numpy.uint8).reshape(meta["height"], meta["width"], 4))
    shutil.rmtree(target)
    return frames, meta["delays_ms"]


def rewrite(gifreel, gif, folder, most):
    """Reads at most a given number of first frames of a GIF: their shown delays in milliseconds, and the files of all three formats."""
    frames, delays = composed(gifreel, gif, folder)
    frames, shown = frames[:most], [100 if delay <= 10 else delay for delay in delays[:most]]
    images = [Image.fromarray(frame, "RGBA") for frame in frames]
    files = {"gif": gif, **{kind: os.path.join(folder, f"source.{kind}") for kind in ("png", "webp")}}
    options = {"save_all": True, "append_images": images[1:], "duration": shown, "loop": 0}
    images[0].save(files["png"], **options, disposal=0, blend=0)
    images[0].save(files["webp"], **options, lossless=True, quality=20, method=0, exact=True)
    return frames, shown, files
