"use strict";

// The player of a transparent animation, which is an image. Browsers cannot pause one, so this script shows a still picture in its place.

const player = document.getElementById("player");
const still = document.getElementById("still");
const toggle = document.getElementById("toggle");
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

function show(isStill) {
  still.media = isStill ? "all" : "not all";
  player.classList.toggle("still", isStill);
  toggle.ariaLabel = isStill ? "Play" : "Pause";
  toggle.hidden = false;
}

toggle.addEventListener("click", () => show(still.media !== "all"));
reducedMotion.addEventListener("change", () => show(reducedMotion.matches));
const image = still.nextElementSibling;
// The blur would show through the animation.
const removeBlur = () => document.getElementById("blur")?.remove();
if (image.complete) removeBlur();
image.addEventListener("load", removeBlur);
show(reducedMotion.matches);
