// The address of a rendition, signed where there is a key. For Node.js 18 and newer; a page must not know the key.
import { createHmac } from "node:crypto";

export function gifreel(source, { server = "", key = "", format = "mp4", ...options } = {}) {
  const url = source.split("#")[0].replace(/[^!#-;=?-\[\]_a-z~]/gu, encodeURIComponent);
  const names = Object.keys(options).filter((name) => options[name] != null);
  const pairs = names.sort().map((name) => `${name}=${options[name]}`);
  const parts = [format, ...pairs.map((pair) => pair.replace(/[^-.0-:=A-Z_a-z~]/gu, encodeURIComponent))];
  if (key) {
    const text = [format, pairs.map((pair) => pair.replaceAll(",", ",,")).join(","), url].join("\n");
    parts.push(`sig=${createHmac("sha256", key).update(text).digest("base64url")}`);
  }
  return `${server}/${parts.join(",")}/${url}`;
}
