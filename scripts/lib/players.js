// Runs in a browser for scripts/checks/players: when a video or image shows which of the numbered pictures (player_cases.py).
"use strict";

const WIDTH = 80, HEIGHT = 48, COLUMNS = 5, SIDE = 16;
const context = new OffscreenCanvas(WIDTH, HEIGHT).getContext("2d", { willReadFrequently: true });

/** The number of a picture, or null for any other picture: black, grey, mixed. */
function numberOf(source) {
    context.fillStyle = "#808080";
    context.fillRect(0, 0, WIDTH, HEIGHT);
    context.drawImage(source, 0, 0, WIDTH, HEIGHT);
    const pixels = context.getImageData(0, 0, WIDTH, HEIGHT).data;
    const bits = [];
    for (let square = 0; square < 10; square++) {
        const left = square % COLUMNS * SIDE, top = Math.floor(square / COLUMNS) * SIDE;
        let sum = 0;
        for (let y = 5; y < 11; y++) {
            for (let x = 5; x < 11; x++) sum += pixels[((top + y) * WIDTH + left + x) * 4 + 1];
        }
        if (sum / 36 > 95 && sum / 36 < 160) return null;
        bits.push(sum / 36 >= 160 ? 1 : 0);
    }
    return bits[0] === 1 && bits[1] === 0 ? bits.slice(2).reduce((number, bit) => number * 2 + bit, 0) : null;
}

/** The next picture that the video shows: its time in the file and its number. */
function nextPicture(video, limit = 10_000) {
    return new Promise((done, fail) => {
        const timer = setTimeout(fail, limit, new Error(`no picture at ${video.currentTime} s`));
        video.requestVideoFrameCallback((_, frame) => {
            clearTimeout(timer);
            done({ time: frame.mediaTime, number: numberOf(video) });
        });
    });
}

async function openVideo(url) {
    const video = document.createElement("video");
    video.muted = true;
    video.playsInline = true;
    video.preload = "auto";
    document.body.replaceChildren(video);
    const first = nextPicture(video);
    const ready = new Promise((done, fail) => {
        video.oncanplay = done;
        video.onerror = () => fail(new Error(`the video does not play: ${video.error.message}`));
    });
    video.src = url;
    await ready;
    return { video, first: await first };
}

async function seek(video, time) {
    const picture = nextPicture(video);
    const sought = new Promise(done => video.addEventListener("seeked", done, { once: true }));
    video.currentTime = time;
    await sought;
    return picture;
}

/** What a video shows at first and a millisecond behind each start, and its duration. */
async function watchVideo(url, starts) {
    const { video, first } = await openVideo(url);
    const pictures = [];
    for (const [index, start] of starts.entries()) {
        // A seek to the picture that is shown already shows no new one.
        let picture = index === 0 ? { ...first, number: first.number ?? numberOf(video) } : await seek(video, start + 0.001);
        if (Math.abs(picture.time - start) > 0.001) {
            // The picture from before the seek may have been shown once more. A wrong one stays.
            picture = await nextPicture(video, 500).catch(() => picture);
        }
        pictures.push([picture.time, picture.number]);
    }
    return { duration: video.duration, pictures };
}

/**
 * Plays over the end of a video, three times if it is short, and reads the picture every five milliseconds.
 *
 * Reports how many pictures had no number, and for each seam the start of the picture that follows and the surplus: how much longer than
 * in the file the pictures before the seam stood, in seconds.
 */
async function watchVideoSeam(url, starts, end) {
    const { video } = await openVideo(url);
    const isLong = end > 6, isStill = starts.length === 1;
    if (isLong) await seek(video, end - 1.5);
    const seams = isLong ? 1 : 3;
    video.loop = true;
    await video.play();
    const begun = performance.now();
    const limit = (isLong ? 2 : (seams + 1) * end) * 1000 + 30_000;
    const gaps = [];
    let unreadable = 0, reads = 0, shown = null;
    while (isStill ? performance.now() - begun < 1500 : gaps.length < seams) {
        if (performance.now() - begun > limit) throw new Error(`after ${gaps.length} seams the video stands at ${video.currentTime} s`);
        await new Promise(done => setTimeout(done, 5));
        const number = numberOf(video), now = performance.now() / 1000;
        reads += 1;
        if (number === null) {
            unreadable += 1;
        } else if (shown === null || number !== shown.number) {
            if (shown !== null && number < shown.number) {
                gaps.push({ to: starts[number], surplus: now - shown.since - (end - starts[shown.number]) - starts[number] });
            }
            shown = { number, since: now };
        }
    }
    video.pause();
    return { reads, unreadable, gaps };
}

/** The pictures of an image by the browser's decoder for scripts; null if it has none. */
async function watchImage(url) {
    if (typeof ImageDecoder === "undefined") return null;
    const response = await fetch(url);
    const decoder = new ImageDecoder({ data: await response.arrayBuffer(), type: response.headers.get("Content-Type") });
    await decoder.tracks.ready;
    await decoder.completed;
    const track = decoder.tracks.selectedTrack;
    const pictures = [];
    let end = 0;
    for (let frameIndex = 0; frameIndex < track.frameCount; frameIndex++) {
        const { image } = await decoder.decode({ frameIndex });
        pictures.push([image.timestamp / 1e6, numberOf(image)]);
        end = (image.timestamp + image.duration) / 1e6;
        image.close();
    }
    return { duration: end, pictures, isEndless: track.repetitionCount === Infinity };
}
