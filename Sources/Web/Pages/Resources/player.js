"use strict";

// The player. The browser loops the video and shows the poster by itself. This script adds a button that pauses, a still
// picture for users who prefer reduced motion, and the loop count of the GIF.

const player = document.getElementById("player");
const video = document.getElementById("video");
const toggle = document.getElementById("toggle");
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
/** The number of plays; Infinity for an endless loop. */
const plays = Number(video.dataset.plays || Infinity);
let played = 0;

/** Updates the button. */
function show(isStill) {
  player.classList.toggle("still", isStill);
  toggle.ariaLabel = isStill ? "Play" : "Pause";
  toggle.hidden = false;
}

function play() {
  // The media attribute excludes the sources for users who prefer reduced motion, until they press the button.
  if (!video.currentSrc) {
    for (const source of video.querySelectorAll("source")) source.removeAttribute("media");
    video.load();
  }
  if (video.ended) {
    // Playing again begins with a seek, which is not one of the plays.
    played = -1;
    video.loop = plays > 1;
  }
  video.play().catch(() => show(true));
}

function stop() {
  video.autoplay = false;
  video.pause();
  show(true);
}

toggle.addEventListener("click", () => (video.paused ? play() : stop()));
video.addEventListener("click", () => toggle.click());
video.addEventListener("playing", () => {
  document.getElementById("blur")?.remove();
  show(false);
});
video.addEventListener("ended", () => show(true));
// Each loop seeks to the start; nothing else on this page seeks.
video.addEventListener("seeking", () => {
  if (video.paused || !video.loop) return;
  played += 1;
  if (played >= plays - 1) video.loop = false;
});
reducedMotion.addEventListener("change", () => reducedMotion.matches && stop());

if (reducedMotion.matches) {
  stop();
} else if (!video.paused) {
  show(false);
}
// Where the browser blocks autoplay, the page shows a still picture with a button.
addEventListener("load", () => setTimeout(() => video.paused && show(true), 500));
