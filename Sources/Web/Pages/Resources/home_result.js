// The result of a conversion on the home page: GIF and video side by side, sizes, facts and snippets.

/** Object URLs in use, to be revoked with the next result. */
let objectURLs = [];
/** The result on the page. */
let shown = null;
/** Those of the list of files, to be revoked with the next list. */
let batchURLs = [];
/** Whether the animations of this page play. */
let isPlaying = !reducedMotion.matches;

// MARK: Showing

/** Shows a result, unless another conversion has begun before its video can be shown. */
async function show(result, isCurrent) {
  const url = URL.createObjectURL(result.blob);
  const probe = Object.assign(document.createElement("video"), { muted: true, preload: "metadata" });
  const isPlayable = await new Promise((resolve) => {
    probe.onloadedmetadata = () => resolve(true);
    probe.onerror = () => resolve(false);
    probe.src = url;
  });
  if (!isCurrent() || !isPlayable) {
    URL.revokeObjectURL(url);
    if (isPlayable) return;
    throw new ConversionError("This browser cannot play the video.");
  }
  shown = result;
  objectURLs.forEach((url) => URL.revokeObjectURL(url));
  objectURLs = [url];
  const video = element("mp4");
  video.src = url;
  video.width = probe.videoWidth;
  video.height = probe.videoHeight;
  showGIF(result, probe);
  const size = result.facts?.bytes;
  element("saving").textContent = size ? saving(size, result.blob.size, formatOf(result)) : "The MP4";
  element("gif-title").textContent = formatOf(result);
  element("gif-bytes").textContent = size ? bytes(size) : "";
  element("mp4-bytes").textContent = bytes(result.blob.size);
  const largest = Math.max(size ?? 0, result.blob.size);
  element("gif-gauge").style.width = `${(100 * (size ?? 0)) / largest}%`;
  element("mp4-gauge").style.width = `${(100 * result.blob.size) / largest}%`;
  const link = element("save");
  link.href = url;
  link.download = stemOf(result) + ".mp4";
  showFacts(result, probe);
  showFormats(result);
  showSnippets(result, probe);
  showLink(result);
  const isFirst = element("result").hidden;
  element("result").hidden = false;
  play(isPlaying);
  setStatus(`Done: ${element("saving").textContent}.`);
  if (isFirst) element("saving").focus({ preventScroll: true });
  element("result").scrollIntoView({ block: "nearest", behavior: reducedMotion.matches ? "auto" : "smooth" });
}

/** Offers the address that shows the result again. */
function showLink(result) {
  const stored = result.header("Content-Location");
  const link = result.url ? new URL(`?url=${encodeURIComponent(result.url)}`, base).href : stored && addressOf(stored);
  element("share").hidden = !link;
  element("share-note").hidden = true;
  element("share").onclick = async () => {
    element("share-note").textContent = link;
    const isCopied = await copy(link, element("share-note"));
    element("share-note").hidden = isCopied;
    if (!isCopied) await copy(link, element("share-note"));
    setStatus(isCopied ? "Copied the link." : "Selected the link. Press Ctrl+C or ⌘C to copy.");
  };
  // The address of this page is the link too; it is not a step to go back to.
  if (result.url) history.replaceState(null, "", `?url=${encodeURIComponent(result.url)}`);
  else history.replaceState(null, "", location.pathname);
}

// MARK: Several files

/** A row in the list of files. */
function batchRow(file) {
  const row = element("batch-row").content.cloneNode(true).firstElementChild;
  row.querySelector(".name").textContent = file.name;
  row.querySelector("[role=status]").textContent = "Waiting";
  return row;
}

/** Releases the files of an earlier list. */
function clearBatch() {
  batchURLs.forEach((url) => URL.revokeObjectURL(url));
  batchURLs = [];
  batchViews.disconnect();
}

/** Videos of the list play while they are in view. */
const batchViews = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    target.dataset.inView = isIntersecting || "";
    playVideo(target);
  }
});

/** Shows a file and its video side by side in the row of the file. */
function compareInBatch(row, result) {
  const [image, still, video] = ["img", "canvas", "video"].map((name) => row.querySelector(name));
  const urls = [result.file, result.blob].map((blob) => URL.createObjectURL(blob));
  batchURLs.push(...urls);
  image.alt = still.ariaLabel = `The animation ${result.file.name}`;
  image.onload = () => isPlaying || freeze(image, still);
  // A browser may play the source in no image, such as a clip.
  image.onerror = () => (image.closest("figure").hidden = true);
  video.ariaLabel = `${stemOf(result)}.mp4`;
  [image.src, video.src] = urls;
  row.querySelector(".format").textContent = formatOf(result);
  [result.facts.bytes, result.blob.size].forEach((size, at) => {
    row.querySelectorAll(".bytes")[at].textContent = bytes(size);
  });
  row.querySelector(".pair").hidden = false;
  batchViews.observe(video);
}

/** Shows the result of a file in its row; null for a file that could not be converted. */
function showInBatch(row, result) {
  const state = row.querySelector("[role=status]");
  if (!result) {
    state.textContent = element("error").textContent || "Cancelled";
    return;
  }
  const [size, length] = [result.facts.bytes, result.blob.size];
  state.textContent = `${bytes(size)} → ${bytes(length)}, ${saving(size, length, formatOf(result))}`;
  compareInBatch(row, result);
  const [button, link] = [row.querySelector("button"), row.querySelector("a")];
  button.hidden = link.hidden = false;
  button.ariaLabel = `Show ${result.file.name}`;
  button.onclick = () => show(result, () => true);
  link.ariaLabel = `Download ${stemOf(result)}.mp4`;
  link.download = `${stemOf(result)}.mp4`;
  // The list keeps the blob, so its address is made when it is needed.
  link.onclick = () => {
    const url = URL.createObjectURL(result.blob);
    link.href = url;
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  };
  link.href = "#";
}

/** Removes the result from the page. */
function hideResult() {
  element("mp4").pause();
  element("result").hidden = true;
}

function createObjectURL(blob) {
  const url = URL.createObjectURL(blob);
  objectURLs.push(url);
  return url;
}

function showGIF(result, video) {
  const image = element("gif");
  // The size of the GIF, so that the layout does not shift when it loads.
  image.width = result.facts?.width ?? video.videoWidth;
  image.height = result.facts?.height ?? video.videoHeight;
  image.hidden = false;
  element("unseen-gif").hidden = true;
  image.onload = () => {
    if (result.file) [image.width, image.height] = [image.naturalWidth, image.naturalHeight];
    if (!isPlaying) freeze(image, element("still"));
  };
  image.onerror = () => {
    image.hidden = true;
    element("unseen-gif").hidden = false;
  };
  image.src = result.file ? createObjectURL(result.file) : result.url;
}

for (const button of document.querySelectorAll(".toggle")) button.addEventListener("click", () => play(!isPlaying));
reducedMotion.addEventListener("change", () => play(!reducedMotion.matches));

/** Plays or pauses the animations of the page. */
function play(shouldPlay) {
  isPlaying = shouldPlay;
  for (const button of document.querySelectorAll(".toggle")) {
    button.textContent = button.textContent.replace(/^\w+/, shouldPlay ? "Pause" : "Play");
  }
  for (const stage of document.querySelectorAll(".stage")) {
    const [image, still, video] = ["img", "canvas", "video"].map((name) => stage.querySelector(name));
    if (video) playVideo(video);
    else if (shouldPlay) still.hidden = true;
    else freeze(image, still);
  }
}

/** Plays or pauses a video as the page does. */
function playVideo(video) {
  const isInView = video.id ? !element("result").hidden : video.dataset.inView;
  if (!isPlaying || !isInView) video.pause();
  // Where the browser refuses, the visitor presses the button.
  else if (video.src) video.play().catch(({ name }) => name === "NotAllowedError" && play(false));
}

/** Covers an image with a picture of its current frame: browsers cannot pause one. */
function freeze(image, still) {
  if (image.hidden || !image.naturalWidth) return;
  [still.width, still.height] = [image.naturalWidth, image.naturalHeight];
  still.getContext("2d").drawImage(image, 0, 0);
  still.hidden = false;
}

function showFacts(result, video) {
  const status = result.header("Cache-Status") ?? "";
  const stages = result.times ?? Object.fromEntries(
    [...(result.header("Server-Timing") ?? "").matchAll(/(\w+);dur=([\d.]+)/g)].map(([, name, time]) => [name, Number(time)]));
  const rows = [
    ["Dimensions", `${video.videoWidth} × ${video.videoHeight}`],
    ["Duration", `${video.duration.toFixed(2)} s`],
    ["Frames", result.facts?.frames],
    ["Fetch time", stages.fetch ? seconds(stages.fetch) : null],
    ["Conversion time", stages.transcode ? seconds(stages.transcode) : null],
    ["Total time", seconds(result.elapsed)],
    ["Cache", /hit/.test(status) && !result.times ? "hit" : "miss"],
  ];
  element("facts").replaceChildren(
    ...rows.filter(([, value]) => value).map(([name, value]) => {
      const row = document.createElement("div");
      row.append(child("dt", name), child("dd", value));
      return row;
    }));
}

function child(tag, text) {
  const node = document.createElement(tag);
  node.textContent = text;
  return node;
}

// MARK: Formats

/** Offers the source in every format of the server. */
async function showFormats(result) {
  const rows = [...element("formats").children];
  for (const row of rows) {
    const { format, extension } = row.dataset;
    const link = row.querySelector("a");
    row.querySelector(".bytes").textContent = "";
    link.download = `${stemOf(result)}.${extension}`;
    link.href = address(format, result.url, result.options);
    // The formats of an upload are made by uploading it once more.
    link.onclick = result.file ? (event) => uploadAgain(event, result, link) : null;
  }
  // The facts list renditions with default options.
  if (!result.url || result.options.length) return;
  const response = await fetch(new URL(`json/${result.url}`, base), { cache: "no-cache" }).catch(() => null);
  const stored = response?.ok ? (await response.json()).renditions : {};
  if (shown !== result) return;
  for (const row of rows) {
    const size = stored[row.dataset.format]?.bytes;
    row.querySelector(".bytes").textContent = size ? bytes(size) : "";
  }
}

/** Converts a file to the format of a link, and downloads the result. */
async function uploadAgain(event, result, link) {
  event.preventDefault();
  const { file } = result;
  setStatus("Converting…");
  try {
    const response = await fetch(link.href, { method: "POST", headers: { "Content-Type": file.type || "image/gif" }, body: file });
    const blob = await response.blob();
    if (!response.ok) throw await problem(response.status, blob);
    if (shown === result) link.closest("li").querySelector(".bytes").textContent = bytes(blob.size);
    const download = document.createElement("a");
    download.href = createObjectURL(blob);
    download.download = link.download;
    download.click();
    setStatus("Downloaded.");
  } catch (error) {
    setStatus("");
    element("error").textContent = error instanceof ConversionError ? error.message : "The server could not be reached.";
  }
}

// MARK: Snippets

function showSnippets(result, video) {
  const [width, height] = [video.videoWidth, video.videoHeight];
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const attribute = (text) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  const name = nameOf(result);
  const stored = result.header("Content-Location");
  const mp4 = result.url ? address("mp4", result.url, result.options) : stored && new URL(stored.replace(/^\//, ""), base).href;
  const loop = result.facts?.loop_count === null ? "" : " loop";
  const list = [];
  if (mp4) {
    const poster = result.url ? `\n  poster="${attribute(address("jpg", result.url, result.options))}"` : "";
    list.push([
      "Embed the video", result.url ? "" : "The address works until the server removes the video from its cache.",
      `<video autoplay${loop} muted playsinline width="${width}" height="${height}"${poster}\n  src="${attribute(mp4)}"></video>`,
    ]);
  }
  if (result.url) {
    const image = address("auto", result.url, result.options);
    const [wide, high] = [result.facts?.width ?? width, result.facts?.height ?? height];
    const size = result.options.length ? "" : ` width="${wide}" height="${high}"`;
    list.push([
      "Embed an image", "AVIF, WebP or MP4, as the browser supports it, and the source until there is one of them.",
      `<img src="${attribute(image)}" alt="${attribute(stemOf(result))}"${size}>`,
    ]);
    list.push(["Markdown", "", `![${stemOf(result).replace(/[\\[\]]/g, "\\$&")}](<${image}>)`]);
    list.push([
      "Embed the player", "A separate page with a pause button. It respects reduced motion and the loop count of the GIF.",
      `<iframe src="${attribute(address("html", result.url, result.options))}" width="${width}" height="${height}"\n  title="${attribute(name)}" allow="autoplay" loading="lazy"></iframe>`,
    ]);
  }
  list.push([
    "Download with curl", "",
    result.url
      ? `curl -o out.mp4 ${quote(address("mp4", result.url, result.options))}`
      : `curl -o out.mp4 --data-binary ${quote("@" + name)} ${quote(address("mp4", null, result.options))}`,
  ]);
  element("snippets").replaceChildren(...list.map(snippet));
}

function snippet([title, note, code]) {
  const node = element("snippet").content.cloneNode(true).firstElementChild;
  node.querySelector("h3").textContent = title;
  node.querySelector("p").textContent = note;
  node.querySelector("p").hidden = !note;
  node.querySelector("code").textContent = code;
  node.querySelector("pre").ariaLabel = title;
  const button = node.querySelector("button");
  button.ariaLabel = `Copy: ${title}`;
  button.addEventListener("click", async () => {
    const isCopied = await copy(code, node.querySelector("code"));
    button.textContent = isCopied ? "Copied" : "Selected";
    setStatus(isCopied ? "Copied." : "Selected. Press Ctrl+C or ⌘C to copy.");
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  return node;
}

/** Copies a text. Without TLS, the clipboard is not available, and the text is selected instead. */
async function copy(text, node) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(node);
    return false;
  }
}

// MARK: Texts

function setStatus(text) {
  element("status").textContent = text;
}

function nameOf(result) {
  return result.file?.name || new URL(result.url).pathname.split("/").pop() || "animation.gif";
}

/** The name of the file without the extension of an animation. */
function stemOf(result) {
  return nameOf(result).replace(/\.(gif|a?png|webp|avifs?|mp4|m4v|mov|webm)$/i, "");
}

/** The format of the source. */
function formatOf(result) {
  const formats = { apng: "APNG", png: "APNG", webp: "WebP", avif: "AVIF", mp4: "MP4", mov: "video", quicktime: "video", webm: "WebM" };
  return formats[(result.facts?.type ?? result.file?.type ?? "").replace(/^.*\//, "")] ?? "GIF";
}

function saving(from, to, format) {
  const percent = Math.round(100 * Math.abs(1 - to / from));
  if (percent === 0) return `The same size as the ${format}`;
  return `${percent}% ${to < from ? "smaller" : "larger"} than the ${format}`;
}

function bytes(count) {
  const units = ["bytes", "KB", "MB", "GB"];
  let unit = 0;
  while (count >= 999.5 && unit < 3) {
    count /= 1000;
    unit += 1;
  }
  return `${unit === 0 || count >= 99.5 ? Math.round(count) : count.toPrecision(count < 9.95 ? 2 : 3)} ${units[unit]}`;
}

function seconds(milliseconds) {
  return milliseconds < 99.5 ? `${Math.max(1, Math.round(milliseconds))} ms` : `${(milliseconds / 1000).toFixed(2)} s`;
}
