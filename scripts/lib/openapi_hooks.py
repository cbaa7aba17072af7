"""Hooks of schemathesis for scripts/check-openapi: most sources are those of the origin on loopback."""

import os
import random

import schemathesis

ORIGIN = os.environ.get("GIFREEL_ORIGIN", "http://127.0.0.1:1")


def source(value):
    """A source of the origin in place of most values, so that requests get past the fetch."""
    if not isinstance(value, str) or not value.startswith("http"):
        return value
    chance = random.Random(value)
    if chance.random() < 0.1:
        return f"{ORIGIN}/missing"
    return f"{ORIGIN}/up/{chance.randrange(20)}.gif"


@schemathesis.hook
def map_query(context, query):
    if query and "url" in query:
        query["url"] = source(query["url"])
    return query


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    if path_parameters and "source" in path_parameters:
        path_parameters["source"] = source(path_parameters["source"])
    if path_parameters and "mount" in path_parameters and isinstance(path_parameters.get("path"), str):
        path_parameters["mount"] = "example"
        extension = random.Random(path_parameters["path"]).choice(["mp4", "jpg", "json", "html", "gif", "txt"])
        path_parameters["path"] = f"{len(path_parameters['path'])}.{extension}"
    return path_parameters
