"use strict";

// The home page: sends GIFs to the service, one after the other, and shows GIF and video side by side.
// Without this script, the two forms work and return the MP4 itself.

const element = (id) => document.getElementById(id);
const base = new URL(".", location.href);
/** The form of the options, or null on a server whose visitors may have none. */
const optionsForm = element("options");
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

/** The AbortController of the conversion in progress, or null. */
let currentRun = null;
/** The source of the last conversion: {url} or {file}. */
let source = null;

document.documentElement.classList.add("live");
for (const node of document.querySelectorAll(".based")) node.prepend(base.href);

// MARK: User actions

element("link").addEventListener("submit", (event) => {
  event.preventDefault();
  begin({ url: element("url").value });
});

element("file").addEventListener("change", (event) => {
  beginFiles([...event.target.files]);
  // Otherwise, selecting the same file again fires no event.
  event.target.value = "";
});

addEventListener("paste", (event) => {
  const files = [...event.clipboardData.files];
  const text = event.clipboardData.getData("text/plain").trim();
  if (files.length) {
    beginFiles(files);
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
  const files = [...event.dataTransfer.files];
  const [url] = event.dataTransfer.getData("text/uri-list").split(/\r?\n/).filter((line) => line && !line.startsWith("#"));
  if (files.length) {
    beginFiles(files);
  } else if (url) {
    element("url").value = url;
    begin({ url });
  }
});

element("sample").addEventListener("click", async (event) => {
  event.preventDefault();
  const response = await fetch(event.target.href).catch(() => null);
  if (response?.ok) begin({ file: new File([await response.blob()], "sample.gif", { type: "image/gif" }) });
});

element("cancel").addEventListener("click", () => {
  waitingFiles = [];
  currentRun?.abort();
});

// A link to a result: /?url=….
const shared = new URLSearchParams(location.search).get("url");
if (shared) {
  element("url").value = shared;
  // The other scripts of this page come after this one.
  setTimeout(() => begin({ url: shared }));
}

optionsForm?.addEventListener("submit", (event) => event.preventDefault());
optionsForm?.addEventListener("input", describeOptions);
optionsForm?.addEventListener("change", () => source && begin(source));
optionsForm?.addEventListener("reset", () => {
  // The fields are reset only after this event.
  setTimeout(() => {
    describeOptions();
    if (source) begin(source);
  });
});

// MARK: Options

/** The options that differ from their defaults, as [name, value]. */
function chosenOptions() {
  if (!optionsForm) return [];
  const defaults = { bg: "ffffff", quality: "60", speed: "1", loops: "1", start: "0", zoom: "1" };
  return [...new FormData(optionsForm)]
    .map(([name, value]) => [name, value.replace("#", "").trim()])
    .filter(([name, value]) => value && value !== defaults[name]);
}

function describeOptions() {
  element("quality-value").value = element("quality").value;
  const [width, height] = [element("width"), element("height")];
  // Pixels are either enlarged or fitted to a size.
  width.disabled = height.disabled = element("zoom").value > 1;
  element("zoom").disabled = !width.disabled && Boolean(width.value || height.value);
  // The fit matters only with both width and height.
  element("fit").disabled = width.disabled || !width.value || !height.value;
  // The gravity matters only to a crop.
  element("gravity").disabled = element("fit").disabled || element("fit").value !== "cover";
  element("chosen").textContent = chosenOptions().map((pair) => pair.join("=")).join(", ");
}

/** The address of a rendition with those options that its format has: /mp4,width=320/https://example.com/a.gif. */
function address(format, url, options) {
  const row = document.querySelector(`#formats [data-format="${format}"]`);
  const known = row ? row.dataset.options.split(" ") : null;
  const chosen = options.filter(([name]) => !known || known.includes(name)).map(([name, value]) => `,${name}=${value}`).join("");
  return new URL(`${format}${chosen}${url ? "/" + url : ""}`, base).href;
}

// MARK: Converting

/** The files that are converted next, with their rows. */
let waitingFiles = [];

/** Converts files, one after the other. Several have a list of their results. */
async function beginFiles(files) {
  if (files.length < 2) {
    element("batch").hidden = true;
    if (files.length) begin({ file: files[0] });
    return;
  }
  const mine = files.map((file) => ({ file, row: batchRow(file) }));
  waitingFiles = mine;
  clearBatch();
  const list = [...mine];
  element("batch-rows").replaceChildren(...mine.map(({ row }) => row));
  element("batch").hidden = false;
  element("batch-title").focus({ preventScroll: true });
  for (const { file, row } of list) {
    const state = row.querySelector("[role=status]");
    // Another source was chosen, or the visitor has cancelled.
    if (waitingFiles !== mine) state.textContent = "Not converted";
    else {
      state.textContent = "Converting…";
      showInBatch(row, await begin({ file }, { isOneOfMany: true }));
    }
  }
}

/** Converts a source and shows the result, which it returns; null if there is none. Aborts a conversion in progress. */
async function begin(nextSource, { isOneOfMany = false } = {}) {
  if (optionsForm && !optionsForm.reportValidity()) return null;
  if (!isOneOfMany) waitingFiles = [];
  currentRun?.abort();
  const run = (currentRun = new AbortController());
  source = nextSource;
  const options = chosenOptions();
  setStatus("");
  element("error").textContent = "";
  element("progress").hidden = false;
  try {
    const result = await (source.file ? upload(source.file, options, run.signal) : convertURL(source.url, options, run.signal));
    if (currentRun !== run) return null;
    const complete = { ...result, options };
    await show(complete, () => currentRun === run);
    return complete;
  } catch (error) {
    if (currentRun !== run) return null;
    if (error.name === "AbortError") {
      setStatus("Cancelled.");
    } else {
      setStatus("");
      // The result of an earlier source must not appear to belong to this one.
      hideResult();
      element("error").textContent = error instanceof ConversionError ? error.message : "The server could not be reached.";
    }
  } finally {
    if (currentRun === run) {
      currentRun = null;
      element("progress").hidden = true;
      showPoster(null);
    }
  }
  return null;
}

/** An error whose message is a sentence for the user. */
class ConversionError extends Error {}

/** Requests the MP4 of a URL and the facts of its GIF. The service fetches the GIF once for both. */
async function convertURL(text, options, signal) {
  const url = readURL(text);
  setStatus("Fetching…");
  setProgress(0, null);
  const started = performance.now();
  const facts = fetch(new URL(`json/${url}`, base), { signal }).then(
    (response) => (response.ok ? response.json() : null), () => null);
  const target = address("mp4", url, options);
  let response = await fetch(target, { signal, headers: preferAsync });
  let times = null;
  if (response.status === 202) {
    ({ times } = await follow(addressOf(response.headers.get("Location")), address("jpg", url, options), signal));
    response = await fetch(target, { signal });
  }
  const blob = await response.blob();
  if (!response.ok) throw await problem(response.status, blob);
  const elapsed = performance.now() - started;
  return { url, blob, elapsed, times, facts: (await facts)?.source, header: (name) => response.headers.get(name) };
}

/** Returns the URL in normalised form, without a fragment. */
function readURL(text) {
  let url;
  try {
    url = new URL(text);
  } catch {
    throw new ConversionError("This is not a valid URL.");
  }
  url.hash = "";
  return url.href;
}

/** Uploads a file and waits for its MP4. */
async function upload(file, options, signal) {
  const { maxBytes, maxSize } = document.body.dataset;
  if (file.size > maxBytes) throw new ConversionError(`The file is ${bytes(file.size)}. The limit of this server is ${maxSize}.`);
  setStatus("Uploading…");
  setProgress(0, null);
  const { request, started } = await send(file, options, signal);
  if (request.status >= 400) throw await problem(request.status, request.response);
  const result = { file, facts: { bytes: file.size }, blob: request.response, header: (name) => request.getResponseHeader(name) };
  if (request.status === 202) {
    const picture = URL.createObjectURL(file);
    try {
      const { path, times } = await follow(addressOf(request.getResponseHeader("Location")), picture, signal);
      const response = await fetch(addressOf(path), { signal });
      result.blob = await response.blob();
      if (!response.ok) throw await problem(response.status, result.blob);
      result.times = times;
      result.header = (name) => (name === "Content-Location" ? path : response.headers.get(name));
    } finally {
      URL.revokeObjectURL(picture);
    }
  }
  result.elapsed = performance.now() - started;
  return result;
}

/** Sends a file. Returns the request at its end, and when the file was sent. */
function send(file, options, signal) {
  // fetch() does not report the progress of an upload.
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    let started = performance.now();
    request.open("POST", address("mp4", null, options));
    request.setRequestHeader("Prefer", preferAsync.Prefer);
    request.setRequestHeader("Content-Type", file.type || "image/gif");
    request.responseType = "blob";
    request.upload.onprogress = (event) => {
      setProgress(event.loaded, event.total, `${bytes(event.loaded)} of ${bytes(event.total)}`);
    };
    request.upload.onload = () => {
      started = performance.now();
      setStatus("Converting…");
      setProgress(0, null);
    };
    request.onerror = () => reject(new TypeError("network"));
    request.onload = () => resolve({ request, started });
    signal.addEventListener("abort", () => {
      request.abort();
      reject(signal.reason);
    });
    request.send(file);
  });
}

/** Reads the error of a problem document (RFC 9457). */
async function problem(status, blob) {
  try {
    return new ConversionError(JSON.parse(await blob.text()).detail);
  } catch {
    return new ConversionError(`The server answered with status ${status}.`);
  }
}
