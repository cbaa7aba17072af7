"""The address of a rendition, signed where there is a key."""
import base64, hmac, urllib.parse


def gifreel(source, server="", key="", format="mp4", **options):
    url = urllib.parse.quote(source.partition("#")[0], safe="!$%&'()*+,-./:;=?@[]_~")
    pairs = [f"{name}={value}" for name, value in sorted(options.items()) if value is not None]
    parts = [format, *(urllib.parse.quote(pair, safe=":=") for pair in pairs)]
    if key:
        text = "\n".join([format, ",".join(pair.replace(",", ",,") for pair in pairs), url])
        code = hmac.digest(key.encode(), text.encode(), "sha256")
        parts.append("sig=" + base64.urlsafe_b64encode(code).decode().rstrip("="))
    return f"{server}/{','.join(parts)}/{url}"
