"use strict";
// Plays the GIFs of a page, or the formats in data-sources, as videos of this server. Where anything fails, the image stays.
// Its attributes and limits: docs/pages.md.
(() => {
  const { src, dataset: settings } = document.currentScript;
  const root = src.slice(0, src.lastIndexOf("/") + 1);
  const origin = new URL(settings.origin || "/", document.baseURI).href;
  const selector = settings.selector || "img";
  const formats = (settings.sources || "gif").trim().replace(/\W+/g, "|").replace("apng", "a?png");
  const isSource = new RegExp(`^https?:[^?#]*\\.(${formats})([?#]|$)`, "i");
  const widths = (settings.widths || "160 320 480 640 960 1280 1920").split(" ");
  const stays = matchMedia("(prefers-reduced-motion: reduce)").matches || navigator.connection?.saveData;
  const known = new WeakMap();
  /** Attributes without a meaning on a video. Click handlers are called on the image. */
  const dropped = /^(on.*|src|srcset|sizes|alt|loading|decoding|fetchpriority|data-gifreel.*)$/;

  /** The URL of a rendition: below a mount, where the extension replaces that of a GIF, or with the source in its path. */
  function address(source, format, options) {
    if (settings.mount && source.startsWith(origin) && /\.(gif|a?png|webp|avif|mp4|mov|webm)$/.test(source)) {
      const query = options.length ? "?" + options.join("&") : "";
      return `${root}${settings.mount}/${source.slice(origin.length).replace(/\.gif$/, "")}.${format}${query}`;
    }
    return `${root}${[format, ...options]}/${source}`;
  }

  /** The URLs that the page states, or this server's. */
  function addresses(img, source) {
    const { gifreelMp4: mp4, gifreelAv1: av1, gifreelJpg: jpg } = img.dataset;
    if (mp4) return { mp4, av1, jpg };
    const options = settings.options ? settings.options.split(",") : [];
    // The smallest step that fills the image. Without a stated width, the file decides.
    const pixels = img.getAttribute("width") && img.clientWidth * devicePixelRatio;
    const step = pixels && widths.find((width) => width >= pixels);
    if (step && !/\b(width|height|zoom)=/.test(options)) options.push("width=" + step);
    const without = (names) => options.filter((option) => !names.test(option));
    return {
      mp4: address(source, "mp4", ["on_larger=problem", ...without(/^frame=/)]),
      av1: "av1" in settings && address(source, "mp4", ["codec=av1", "on_miss=queue", "on_larger=problem", ...without(/^(frame|codec)=/)]),
      jpg: address(source, "jpg", without(/^(speed|fps|start|end|loops|tune|codec|max_bytes)=/)),
    };
  }

  function makeVideo(img, { mp4, av1 }) {
    const video = document.createElement("video");
    for (const { name, value } of img.attributes) if (!dropped.test(name)) video.setAttribute(name, value);
    Object.assign(video, { muted: true, loop: true, playsInline: true, preload: "auto" });
    if (img.alt && !img.hasAttribute("role")) video.setAttribute("role", "img");
    if (img.alt && !img.hasAttribute("aria-label")) video.setAttribute("aria-label", img.alt);
    if (img.getAttribute("alt") === "") video.setAttribute("aria-hidden", "true");
    const add = (type, src) => video.append(Object.assign(document.createElement("source"), { type, src }));
    if (av1) add('video/mp4; codecs="av01.0.08M.08"', av1);
    add("video/mp4", mp4);
    return video;
  }

  /** Shows the poster of a GIF that has not arrived. `start` in the result plays the video. */
  function takeOver(img) {
    const source = img.src.split("#")[0];
    const { srcset } = img;
    const urls = addresses(img, source);
    const takeover = new AbortController();
    const { signal } = takeover;
    let poster;
    let video;
    let isPaused = false;
    let limit;
    // Where the visitor forbids videos to start, or an iPhone saves energy, the GIF moves.
    const play = () => video.play().catch(({ name }) => name === "NotAllowedError" && restore());
    const visibility = new IntersectionObserver(([{ isIntersecting }]) => {
      if (!isIntersecting) video.pause();
      else if (!isPaused) play();
    });

    const shows = () => (img.src === poster ? !img.srcset : img.src.split("#")[0] === source && img.srcset === srcset);
    function release() {
      takeover.abort();
      clearTimeout(limit);
      visibility.disconnect();
      approach.unobserve(img);
      if (video) {
        video.replaceWith(img);
        // Ends the download.
        video.replaceChildren();
        video.load();
      }
      if (img.src === poster) img.src = source;
    }
    function restore(event) {
      // Handlers of the page do not know the poster.
      event?.stopImmediatePropagation();
      if (srcset && shows()) img.srcset = srcset;
      release();
    }
    function swap() {
      clearTimeout(limit);
      if (!shows()) return;
      const { naturalWidth, naturalHeight, clientWidth } = img;
      // The sides of a video are even.
      if (naturalWidth % 2 || naturalHeight % 2) video.style.aspectRatio = naturalWidth / naturalHeight;
      video.style.objectFit = getComputedStyle(img).objectFit;
      img.replaceWith(video);
      changes.observe(img, changed);
      if (naturalWidth && video.clientWidth !== clientWidth) video.width = naturalWidth;
      visibility.observe(video);
    }
    function start() {
      video = makeVideo(img, urls);
      video.addEventListener("loadeddata", swap, { once: true, signal });
      video.addEventListener("error", restore, { signal });
      video.lastChild.addEventListener("error", restore, { signal });
      video.addEventListener("click", (event) => {
        if (!img.dispatchEvent(new MouseEvent("click", event))) event.preventDefault();
        if (event.defaultPrevented || video.closest("a, button, label")) return;
        isPaused = !video.paused;
        if (isPaused) video.pause();
        else play();
      });
      // Some browsers load nothing before they are asked to play.
      play();
      limit = setTimeout(restore, 1000 * (settings.patience || 10));
    }
    function showPoster() {
      if (!shows()) return;
      img.addEventListener("error", restore, { capture: true, signal });
      img.removeAttribute("srcset");
      img.src = urls.jpg;
      poster = img.src;
    }
    if (/\.gif([?]|$)/i.test(source)) {
      // The GIF is not loaded then.
      if (urls.jpg && (stays || !img.complete)) showPoster();
    } else if (urls.jpg && stays) {
      // A still picture has no poster.
      Object.assign(new Image(), { onload: showPoster, src: urls.jpg });
    }
    if (stays) img.addEventListener("click", start, { once: true, signal });
    return { start: stays ? () => {} : start, shows, release };
  }

  const approach = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (!isIntersecting) continue;
        approach.unobserve(target);
        known.get(target)?.start();
      }
    },
    { rootMargin: (settings.margin || 300) + "px" },
  );

  function consider(img) {
    if (known.get(img)?.shows()) return;
    // A script, such as a lazy loader, has changed the picture.
    known.get(img)?.release();
    known.delete(img);
    if (img.tagName !== "IMG" || !img.matches(selector) || img.dataset.gifreel === "off") return;
    // Another picture is shown.
    if (img.srcset && !img.srcset.split(/,?\s+/).includes(img.getAttribute("src"))) return;
    if (!isSource.test(img.src) || img.useMap || img.isMap || img.closest("picture")) return;
    // A rendition of this server.
    if (img.src.startsWith(root) && /^[^/]+\/https?[:%]/.test(img.src.slice(root.length))) return;
    // Addresses that the page does not state have no signature.
    if ("signed" in settings && !img.dataset.gifreelMp4) return;
    known.set(img, takeOver(img));
    approach.observe(img);
  }
  function find(node) {
    if (node.nodeType === 1) [node, ...node.querySelectorAll("img")].forEach(consider);
  }

  const changed = { attributeFilter: ["src", "srcset"] };
  const changes = new MutationObserver((records) => {
    for (const { target, addedNodes } of records) {
      consider(target);
      addedNodes.forEach(find);
    }
  });
  find(document.documentElement);
  changes.observe(document, { childList: true, subtree: true, ...changed });
})();
