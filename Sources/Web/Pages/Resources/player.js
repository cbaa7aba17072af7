"use strict";

// The player: the browser loops and shows the poster by itself. This adds a button to stop the motion, a still where
// motion is not wanted, and the number of plays the GIF asks for.

const player = document.getElementById("player");
const video = document.getElementById("video");
const toggle = document.getElementById("toggle");
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
/** How often the video is to play; Infinity for always. */
const plays = Number(video.dataset.plays || Infinity);
let played = 0;

/** Shows what the button does, and where it belongs. */
function show(isStill) {
  player.classList.toggle("still", isStill);
  toggle.ariaLabel = isStill ? "Play" : "Pause";
  toggle.hidden = false;
}

function play() {
  // A source that the reader's wish ruled out is taken all the same once they ask for it.
  if (!video.currentSrc) video.src = video.querySelector("source").src;
  if (video.ended) {
    // Playing again begins with a seek, which is none of the plays.
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
video.addEventListener("playing", () => show(false));
video.addEventListener("ended", () => show(true));
// Looping seeks to the start: nothing else on this page seeks.
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
// Where the browser does not let the video begin by itself, it is a still with a button.
addEventListener("load", () => setTimeout(() => video.paused && show(true), 500));
