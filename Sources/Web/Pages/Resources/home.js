"use strict";

// The home page: sends one GIF at a time to the service and shows the result beside it.
// Without this script the two forms still work: their answer is the MP4 itself.

const element = (id) => document.getElementById(id);
const base = new URL(".", location.href);
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

/** The AbortController of the conversion in progress, or null. */
let run = null;
/** The source of the last conversion: {url} or {file}. */
let source = null;

document.documentElement.classList.add("live");

// MARK: User actions

element("link").addEventListener("submit", (event) => {
  event.preventDefault();
  begin({ url: element("url").value });
});

element("file").addEventListener("change", (event) => {
  const [file] = event.target.files;
  if (file) begin({ file });
  // So that choosing the same file again fires the event again.
  event.target.value = "";
});

addEventListener("paste", (event) => {
  const [file] = event.clipboardData.files;
  const text = event.clipboardData.getData("text/plain").trim();
  if (file) {
    begin({ file });
  } else if (/^https?:\/\/\S+$/i.test(text) && !event.target.closest("input")) {
    element("url").value = text;
    begin({ url: text });
  } else {
    return;
  }
  event.preventDefault();
});

addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("dragging");
});
addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) document.body.classList.remove("dragging");
});
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dragging");
  const [file] = event.dataTransfer.files;
  const [url] = event.dataTransfer.getData("text/uri-list").split(/\r?\n/).filter((line) => line && !line.startsWith("#"));
  if (file) {
    begin({ file });
  } else if (url) {
    element("url").value = url;
    begin({ url });
  }
});

element("cancel").addEventListener("click", () => run?.abort());

element("options").addEventListener("submit", (event) => event.preventDefault());
element("options").addEventListener("input", describeOptions);
element("options").addEventListener("change", () => source && begin(source));
element("options").addEventListener("reset", () => {
  // The fields are reset only after this event.
  setTimeout(() => {
    describeOptions();
    if (source) begin(source);
  });
});

// MARK: Options

/** The options that differ from their defaults, as [name, value]. */
function chosenOptions() {
  const defaults = { bg: "ffffff", quality: "60", speed: "1", loops: "1", start: "0" };
  return [...new FormData(element("options"))]
    .map(([name, value]) => [name, value.replace("#", "").trim()])
    .filter(([name, value]) => value && value !== defaults[name]);
}

function describeOptions() {
  element("quality-value").value = element("quality").value;
  // The fit matters only with both width and height.
  element("fit").disabled = !element("width").value || !element("height").value;
  element("chosen").textContent = chosenOptions().map((pair) => pair.join("=")).join(", ");
}

/** The path of a rendition: /mp4,width=320/https://example.com/a.gif */
function address(format, url, only = () => true) {
  const options = chosenOptions().filter(([name]) => only(name)).map(([name, value]) => `,${name}=${value}`).join("");
  return new URL(`${format}${options}${url ? "/" + url : ""}`, base).href;
}

// MARK: Converting

/** Converts a source and shows the result. Aborts a conversion in progress. */
async function begin(what) {
  if (!element("options").reportValidity()) return;
  run?.abort();
  const mine = (run = new AbortController());
  source = what;
  say("");
  element("error").textContent = "";
  element("progress").hidden = false;
  try {
    const made = await (what.file ? upload(what.file, mine.signal) : ask(what.url, mine.signal));
    if (run === mine) await show(made);
  } catch (error) {
    if (run !== mine) return;
    if (error.name === "AbortError") {
      say("Cancelled.");
    } else {
      say("");
      // The result of an earlier source must not appear to belong to this one.
      hideResult();
      element("error").textContent = error instanceof Refusal ? error.message : "The server could not be reached.";
    }
  } finally {
    if (run === mine) {
      run = null;
      element("progress").hidden = true;
    }
  }
}

/** The reason why there is no video, as a sentence for the user. */
class Refusal extends Error {}

/** Requests the MP4 of a URL and the facts of its GIF. The service fetches the GIF once for both. */
async function ask(text, signal) {
  const url = readURL(text);
  say("Fetching and converting…");
  element("bar").removeAttribute("value");
  const started = performance.now();
  const facts = fetch(new URL(`json/${url}`, base), { signal }).then(
    (answer) => (answer.ok ? answer.json() : null), () => null);
  const answer = await fetch(address("mp4", url), { signal });
  const blob = await answer.blob();
  if (!answer.ok) throw await refusal(answer.status, blob);
  const elapsed = performance.now() - started;
  return { url, blob, elapsed, facts: (await facts)?.source, header: (name) => answer.headers.get(name) };
}

/** The URL in the form that the service gets: normalised, without a fragment. */
function readURL(text) {
  let url;
  try {
    url = new URL(text);
  } catch {
    throw new Refusal("This is not a valid URL.");
  }
  url.hash = "";
  return url.href;
}

/** Uploads a file and waits for its MP4. */
function upload(file, signal) {
  const limit = Number(document.body.dataset.maxBytes);
  if (file.size > limit) throw new Refusal(`The file has ${bytes(file.size)}. This server accepts up to ${bytes(limit)}.`);
  say("Uploading…");
  // fetch() does not report the progress of an upload.
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    let started = performance.now();
    request.open("POST", address("mp4"));
    request.setRequestHeader("Content-Type", "image/gif");
    request.responseType = "blob";
    request.upload.onprogress = (event) => {
      element("bar").value = event.loaded / event.total;
    };
    request.upload.onload = () => {
      started = performance.now();
      say("Converting…");
      element("bar").removeAttribute("value");
    };
    request.onerror = () => reject(new TypeError("network"));
    request.onload = async () => {
      if (request.status >= 400) return reject(await refusal(request.status, request.response));
      resolve({
        file, blob: request.response, elapsed: performance.now() - started,
        facts: { bytes: file.size }, header: (name) => request.getResponseHeader(name),
      });
    };
    signal.addEventListener("abort", () => {
      request.abort();
      reject(signal.reason);
    });
    request.send(file);
  });
}

/** The error that a problem document describes (RFC 9457). */
async function refusal(status, blob) {
  try {
    return new Refusal(JSON.parse(await blob.text()).detail);
  } catch {
    return new Refusal(`The server answered with status ${status}.`);
  }
}
