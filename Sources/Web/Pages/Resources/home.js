"use strict";

// The page at /: one GIF at a time goes to the service this page came from, and what comes back is shown beside it.
// Without this script the two forms still work: they answer with the MP4 itself.

const element = (id) => document.getElementById(id);
const base = new URL(".", location.href);
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

/** What is under way: an AbortController, or null. */
let run = null;
/** What was converted last: {url} or {file}. */
let source = null;

document.documentElement.classList.add("live");

// MARK: What the user does

element("link").addEventListener("submit", (event) => {
  event.preventDefault();
  begin({ url: element("url").value });
});

element("file").addEventListener("change", (event) => {
  const [file] = event.target.files;
  if (file) begin({ file });
  // Choosing the same file again is a change too.
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
  // The fields have their first values only after this event.
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
  // How to fit is a question only where both sides are given.
  element("fit").disabled = !element("width").value || !element("height").value;
  element("chosen").textContent = chosenOptions().map((pair) => pair.join("=")).join(", ");
}

/** The path of a rendition: /mp4,width=320/https://example.com/a.gif */
function address(format, url, only = () => true) {
  const options = chosenOptions().filter(([name]) => only(name)).map(([name, value]) => `,${name}=${value}`).join("");
  return new URL(`${format}${options}${url ? "/" + url : ""}`, base).href;
}

// MARK: Converting

/** Converts a source and shows what came of it. A conversion under way is given up. */
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
      element("error").textContent = error instanceof Refusal ? error.message : "The server cannot be reached.";
    }
  } finally {
    if (run === mine) {
      run = null;
      element("progress").hidden = true;
    }
  }
}

/** Why there is no video, in a sentence for people. */
class Refusal extends Error {}

/** Asks for the MP4 of a URL, and for the GIF's facts at the same time: the service fetches it once for both. */
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

/** The URL as the service is asked for it: normalised, without what only browsers see. */
function readURL(text) {
  let url;
  try {
    url = new URL(text);
  } catch {
    throw new Refusal("This is not the address of anything.");
  }
  url.hash = "";
  return url.href;
}

/** Sends a file and waits for its MP4. */
function upload(file, signal) {
  const limit = Number(document.body.dataset.maxBytes);
  if (file.size > limit) throw new Refusal(`The file has ${bytes(file.size)}, and that is more than this server takes.`);
  say("Uploading…");
  // fetch() does not tell how far an upload is.
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

/** What an error's document says (RFC 9457). */
async function refusal(status, blob) {
  try {
    return new Refusal(JSON.parse(await blob.text()).detail);
  } catch {
    return new Refusal(`The server answered with status ${status}.`);
  }
}
