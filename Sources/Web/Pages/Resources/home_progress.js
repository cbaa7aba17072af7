// The progress of a conversion on the home page. The page asks without waiting (Prefer: respond-async) and follows the events of the
// status. A stored rendition comes at once.

const preferAsync = { Prefer: "respond-async" };

/** The address below the page of a path that the server names, whatever prefix a proxy has added. */
function addressOf(path) {
  return new URL(path.replace(/^\//, ""), base).href;
}

/**
 * Follows a status to its end. Returns the path of the rendition and the times of its stages in milliseconds.
 *
 * With `poster`, the address of a still picture, that is shown as soon as the source has arrived. An abort tells the server.
 */
function follow(status, poster, signal) {
  return new Promise((resolve, reject) => {
    const events = new EventSource(status);
    /** When each state was first seen. */
    const began = {};
    const timeLeft = makeTimeLeft();
    const end = (settle) => {
      events.close();
      signal.removeEventListener("abort", abort);
      showPoster(null);
      // The server need not keep the status any longer.
      fetch(status, { method: "DELETE", keepalive: true }).catch(() => {});
      settle();
    };
    const abort = () => end(() => reject(signal.reason));
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort);
    events.onmessage = (event) => {
      const progress = JSON.parse(event.data);
      const now = performance.now();
      began[progress.state] ??= now;
      if (progress.state === "done") {
        const times = { fetch: span(began.fetching, began.waiting ?? began.encoding), transcode: span(began.encoding, now) };
        end(() => resolve({ path: progress.url, times }));
      } else if (progress.state === "failed") {
        end(() => reject(new ConversionError(progress.problem.detail)));
      } else {
        showProgress(progress, timeLeft(progress, now));
        if (progress.state !== "fetching") showPoster(poster);
      }
    };
    // After an interruption the browser connects again by itself, unless the server refuses.
    events.onerror = () => {
      if (events.readyState === EventSource.CLOSED) end(() => reject(new TypeError("network")));
    };
  });
}

function span(begin, end) {
  return begin && end ? end - begin : null;
}

/**
 * Returns a function that estimates the seconds left from the documents of a status; null while it cannot.
 *
 * An encoder holds back the first frames, so the rate counts from the first frame that is done.
 */
function makeTimeLeft() {
  let first = null;
  return ({ frames_done: done, frames_total: all }, now) => {
    if (!done) return null;
    first ??= { done, now };
    return done > first.done ? Math.ceil(((now - first.now) / (done - first.done)) * (all - done) / 1000) : null;
  };
}

/** Shows the document of a status. `left` is the number of seconds left, or null. */
function showProgress(progress, left) {
  switch (progress.state) {
    case "fetching":
      setStatus("Fetching…");
      setProgress(progress.fetched_bytes, progress.total_bytes, progress.fetched_bytes > 0 && [
        bytes(progress.fetched_bytes), progress.total_bytes && ` of ${bytes(progress.total_bytes)}`].filter(Boolean).join(""));
      break;
    case "waiting":
      setStatus("Waiting for other conversions…");
      setProgress(0, null, progress.queue_position > 1 && `${progress.queue_position - 1} before this one`);
      break;
    case "encoding": {
      const [done, all] = [progress.frames_done, progress.frames_total];
      setStatus("Converting…");
      setProgress(done, all, done > 0 && `Frame ${done} of ${all}${left ? `, ${clock(left)} left` : ""}`);
    }
  }
}

/** Fills the bar, or lets it move if `all` is not known, and shows a text below it. */
function setProgress(done, all, text) {
  if (all) {
    element("bar").value = done / all;
  } else {
    element("bar").removeAttribute("value");
  }
  element("detail").textContent = text || "";
}

/** Shows a still picture while a conversion runs; null removes it. */
function showPoster(address) {
  const image = element("poster");
  if (image.dataset.address === (address ?? "")) return;
  image.dataset.address = address ?? "";
  image.hidden = true;
  if (!address) return image.removeAttribute("src");
  image.onload = () => {
    image.hidden = image.dataset.address !== address;
  };
  image.src = address;
}

/** 7 as «7 s», 150 as «2:30 min». */
function clock(count) {
  return count < 60 ? `${count} s` : `${Math.floor(count / 60)}:${String(count % 60).padStart(2, "0")} min`;
}
