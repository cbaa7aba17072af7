// Plays large animations of a page as videos. gifreel.js loads this module where the server advises a video (docs/pages.md).
// The image stays the element that it is, and shows its still picture. Its video is laid over it, outside of the body, while the boxes are equal
// and nothing else lies over the image. Otherwise the image plays.

const layer = document.createElement("gifreel-videos");
const videos = layer.attachShadow({ mode: "open" });
const sheet = new CSSStyleSheet();
sheet.replaceSync(`:host{all:initial!important;position:absolute!important;top:0!important;left:0!important;pointer-events:none!important}
video{position:absolute;top:0;left:0;box-sizing:border-box;border:0 solid #0000;visibility:hidden}
.on{visibility:visible}
@media print{:host{display:none!important}}`);
videos.adoptedStyleSheets = [sheet];
layer.ariaHidden = "true";

/** The styles of an image that move the edges of its picture. */
const copied = ["padding", "borderWidth", "borderRadius", "objectFit", "objectPosition", "imageRendering"];
/** The films in view. */
const running = new Set();
let frame;

const parentOf = (element) => element.parentElement || element.getRootNode().host;

/** The z-index of the outermost stacking context of an element that has one. */
function level(element) {
  let index = 0;
  for (let each = element; each; each = parentOf(each)) {
    const { zIndex } = getComputedStyle(each);
    if (zIndex !== "auto") index = Number(zIndex);
  }
  return index;
}

/** Whether an ancestor of an image clips or changes what the image shows, or paints over it. */
function changes(ancestor, img, box) {
  const style = getComputedStyle(ancestor);
  const effects = ["filter", "backdropFilter", "transform", "translate", "rotate", "scale", "perspective", "clipPath", "maskImage"];
  if (effects.some((name) => (style[name] ?? "none") !== "none") || style.opacity !== "1" || style.mixBlendMode !== "normal") return true;
  if (ancestor !== img && ancestor !== document.body && ancestor !== document.documentElement && style.overflow !== "visible") {
    const { left, top, right, bottom } = ancestor.getBoundingClientRect();
    if (box.left < left - 1 || box.top < top - 1 || box.right > right + 1 || box.bottom > bottom + 1) return true;
  }
  return ["::before", "::after"].some((name) => {
    const { content, position, zIndex } = getComputedStyle(ancestor, name);
    return !["none", "normal"].includes(content) && ["absolute", "fixed"].includes(position) && !(zIndex < 0);
  });
}

/** Whether something that ignores the pointer lies over an image. */
function isVeiled(img, box) {
  return [...(img.offsetParent ?? document.body).querySelectorAll("*")].some((each) => {
    const { left, top, right, bottom } = each.getBoundingClientRect();
    return left < box.right && right > box.left && top < box.bottom && bottom > box.top && each !== img
      && !each.contains(img) && getComputedStyle(each).pointerEvents === "none";
  });
}

/** Whether a video shows exactly what its image would show. */
function fits({ img, video }, isFirst) {
  const box = img.getBoundingClientRect();
  const own = video.getBoundingClientRect();
  if (["left", "top", "width", "height"].some((side) => Math.abs(box[side] - own[side]) > 0.5)) return false;
  if (img.closest("dialog[open],[popover]") || level(img) || getComputedStyle(img).visibility !== "visible") return false;
  for (let each = img; each; each = parentOf(each)) if (changes(each, img, box)) return false;
  if (isFirst && isVeiled(img, box)) return false;
  const parts = [0.15, 0.5, 0.85];
  return parts.every((across) => parts.every((down) => {
    const [x, y] = [box.left + box.width * across, box.top + box.height * down];
    // Outside of the window, nothing is found.
    const found = img.getRootNode().elementFromPoint(x, y);
    return !found || found === img || level(found) > 0;
  }));
}

/** Lays the video of a film on its image. */
function place(film) {
  const { img, video } = film;
  const ground = layer.getBoundingClientRect();
  const { left, top, width, height } = img.getBoundingClientRect();
  const at = `translate:${left - ground.left}px ${top - ground.top}px;width:${width}px;height:${height}px`;
  if (at === film.at) return;
  film.at = video.style.cssText = at;
  const style = getComputedStyle(img);
  for (const name of copied) video.style[name] = style[name];
}

function tick() {
  frame = 0;
  for (const film of running) {
    const { img, video, isReady, isShown } = film;
    film.age += 1;
    // Later changes of the page are noticed within half a second.
    const isDue = isShown ? film.age % 30 === 0 : isReady && img.complete && img.naturalWidth;
    if (isDue) film.at = "";
    place(film);
    if (!isDue) continue;
    if (!fits(film, !isShown)) film.give();
    else if (!isShown) {
      film.isShown = true;
      video.className = "on";
    }
  }
  if (running.size) frame = requestAnimationFrame(tick);
}

// Plays the animation of an image as a video. The state is that of gifreel.js, which calls its `film` with whether the animation is paused, and
// without an argument when the image leaves.
export function play(state, address, update) {
  const { img } = state;
  const film = { img, age: 0 };
  film.end = () => {
    running.delete(film);
    film.video?.remove();
    state.film = undefined;
  };
  /** Leaves the animation to the image. */
  film.give = () => {
    film.end();
    update(state);
  };
  function start() {
    if (!layer.isConnected) document.documentElement.append(layer);
    const video = (film.video = document.createElement("video"));
    Object.assign(video, { muted: true, loop: true, playsInline: true, disablePictureInPicture: true });
    video.addEventListener("error", film.give);
    video.addEventListener("playing", () => (film.isReady = true));
    videos.append(video);
    video.src = address;
  }
  state.film = (isPaused) => {
    if (isPaused === undefined) return film.end();
    if (state.moves === false) return film.give();
    const plays = !isPaused && state.inView && !state.hidden;
    if (plays && !film.video) start();
    if (!film.video) return;
    if (plays) film.video.play().catch(({ name }) => name === "NotAllowedError" && film.give());
    else film.video.pause();
    // A paused video is moved with its image.
    if (state.inView && !state.hidden) running.add(film);
    else running.delete(film);
    film.video.hidden = state.hidden;
    frame ||= requestAnimationFrame(tick);
  };
  update(state);
}
