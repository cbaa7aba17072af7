// Runs in a browser for scripts/checks/browser, players and sources: what images and videos show, and when. Times are in seconds.
"use strict";

const after = (milliseconds, value) => new Promise((done) => setTimeout(done, milliseconds, value));

/**
 * Decodes an image with ImageDecoder. Returns the decoder, the size, the number of plays (0: endless), and for each frame its start, its
 * duration and the result of `read`.
 */
async function openImage(url, how, read = () => null) {
    const response = await fetch(url);
    const type = response.headers.get("Content-Type");
    const decoder = new ImageDecoder({ data: await response.arrayBuffer(), type, ...how });
    await decoder.tracks.ready;
    await decoder.completed;
    const { frameCount, repetitionCount } = decoder.tracks.selectedTrack;
    const found = { decoder, starts: [], durations: [], pictures: [], loops: repetitionCount === Infinity ? 0 : repetitionCount };
    let now = 0;
    for (let frameIndex = 0; frameIndex < frameCount; frameIndex++) {
        const { image } = await decoder.decode({ frameIndex });
        // The decoder reports the coded delay; browsers show delays of up to 10 ms for 100 ms.
        const duration = image.duration <= 10_000 ? 100_000 : image.duration;
        found.starts.push(now / 1e6);
        found.durations.push(duration / 1e6);
        found.pictures.push(read(image));
        now += duration;
        found.size = [image.displayWidth, image.displayHeight];
        image.close();
    }
    return { ...found, end: now / 1e6 };
}

/** Decodes a frame of an image, and returns the result of `use`. */
async function withFrame(decoder, frameIndex, use) {
    const { image } = await decoder.decode({ frameIndex });
    try {
        return await use(image);
    } finally {
        image.close();
    }
}

/** The start of the next picture that a video shows; null if there is none in time. */
const nextPicture = (video, milliseconds) => Promise.race([
    new Promise((done) => video.requestVideoFrameCallback((_, frame) => done(frame.mediaTime))), after(milliseconds, null)]);

/** A paused video, and the start of the picture that it shows first. */
async function openVideo(url) {
    const video = Object.assign(document.createElement("video"), { muted: true, playsInline: true, preload: "auto" });
    document.body.replaceChildren(video);
    const first = nextPicture(video, 10_000);
    const ready = new Promise((done, fail) => {
        video.oncanplay = done;
        video.onerror = () => fail(new Error(`the video does not play: ${video.error.message}`));
        setTimeout(fail, 10_000, new Error("the video does not play: no data"));
    });
    video.src = url;
    await ready;
    return { video, first: await first };
}

/** Seeks, and returns the start of the picture that the video shows then; null if it shows no other one. */
async function seek(video, time, milliseconds = 5000) {
    const shown = nextPicture(video, milliseconds);
    const sought = new Promise((done) => { video.onseeked = done; });
    video.currentTime = time;
    await Promise.race([sought, after(milliseconds)]);
    return shown;
}

/** A canvas of a size, to draw pictures on and read them from. */
function sheet(width, height, ground) {
    const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
    return (source) => {
        context.clearRect(0, 0, width, height);
        if (ground) {
            context.fillStyle = ground;
            context.fillRect(0, 0, width, height);
        }
        context.drawImage(source, 0, 0, width, height);
        return context.getImageData(0, 0, width, height).data;
    };
}

// scripts/checks/players: its numbered pictures

const [COLUMNS, ROWS, SIDE] = [5, 3, 16];
const paint = sheet(COLUMNS * SIDE, ROWS * SIDE, "#808080");

/** The number of a picture, or null for any other picture: black, grey, mixed. */
function numberOf(source) {
    const pixels = paint(source);
    const bits = [];
    for (let square = 0; square < 10; square++) {
        const left = square % COLUMNS * SIDE, top = Math.floor(square / COLUMNS) * SIDE;
        let sum = 0;
        for (let y = 5; y < 11; y++) {
            for (let x = 5; x < 11; x++) sum += pixels[((top + y) * COLUMNS * SIDE + left + x) * 4 + 1];
        }
        if (sum / 36 > 95 && sum / 36 < 160) return null;
        bits.push(sum / 36 >= 160 ? 1 : 0);
    }
    return bits[0] === 1 && bits[1] === 0 ? bits.slice(2).reduce((number, bit) => number * 2 + bit, 0) : null;
}

const paintClear = sheet(COLUMNS * SIDE, ROWS * SIDE);

/** The mean alpha, of 255, in the middle of the squares below the number, which are transparent in some GIFs. */
function alphaOf(source) {
    const pixels = paintClear(source);
    let sum = 0;
    for (let column = 0; column < COLUMNS; column++) {
        sum += pixels[(2.5 * SIDE * COLUMNS * SIDE + (column + 0.5) * SIDE) * 4 + 3];
    }
    return sum / COLUMNS;
}

/** What a video shows at first and a millisecond behind each start, and its duration. */
async function watchVideo(url, starts) {
    const { video, first } = await openVideo(url);
    const pictures = [];
    for (const [index, start] of starts.entries()) {
        // A seek to the picture that is shown already shows no new one.
        let time = index ? await seek(video, start + 0.001) : first;
        // The picture from before the seek may have been shown once more. A wrong one stays.
        if (time === null || Math.abs(time - start) > 0.001) time = (await nextPicture(video, 500)) ?? time;
        pictures.push([time, numberOf(video), alphaOf(video)]);
    }
    return { duration: video.duration, pictures };
}

/**
 * Plays over the end of a video, three times if it is short, and reads the picture every five milliseconds.
 *
 * Reports how many pictures had no number, and for each seam the start of the picture that follows and the surplus: how much longer than
 * in the file the pictures before the seam stood.
 */
async function watchSeam(url, starts, end) {
    const { video } = await openVideo(url);
    const isLong = end > 6, isStill = starts.length === 1;
    if (isLong) await seek(video, end - 1.5);
    const seams = isLong ? 1 : 3;
    video.loop = true;
    await video.play();
    const begun = performance.now();
    const limit = (isLong ? 2 : (seams + 1) * end) * 1000 + 30_000;
    const gaps = [];
    let unreadable = 0, shown = null;
    while (isStill ? performance.now() - begun < 1500 : gaps.length < seams) {
        if (performance.now() - begun > limit) throw new Error(`after ${gaps.length} seams the video stands at ${video.currentTime} s`);
        await after(5);
        const number = numberOf(video), now = performance.now() / 1000;
        if (number === null) unreadable += 1;
        else if (number !== shown?.number) {
            if (shown && number < shown.number) {
                gaps.push({ to: starts[number], surplus: now - shown.since - (end - starts[shown.number]) - starts[number] });
            }
            shown = { number, since: now };
        }
    }
    video.pause();
    return { unreadable, gaps };
}

/** The pictures of an image as `watchVideo` tells them, by the browser's decoder for scripts; null if it has none. */
async function watchImage(url) {
    if (typeof ImageDecoder === "undefined") return null;
    const { starts, pictures, end, loops } = await openImage(url, {}, (image) => [numberOf(image), alphaOf(image)]);
    return { duration: end, pictures: starts.map((start, index) => [start, ...pictures[index]]), loops };
}

// scripts/checks/sources: the colours at some points, which are shares of width and height

function colours(points, [width, height]) {
    const read = sheet(width, height);
    return (source) => {
        const pixels = read(source);
        return points.map(([x, y]) => {
            const at = 4 * (Math.floor(y * height) * width + Math.floor(x * width));
            return [...pixels.subarray(at, at + 4)];
        });
    };
}

async function sampleImage(url, points) {
    const read = (image) => colours(points, [image.displayWidth, image.displayHeight])(image);
    const { starts, pictures, end, size, loops } = await openImage(url, { preferAnimation: true }, read);
    return { size, times: starts, pictures, duration: end, loops };
}

/** Seeks to times, and reads what is shown there. */
async function sampleVideo(url, moments, points) {
    const { video, first } = await openVideo(url);
    const size = [video.videoWidth, video.videoHeight];
    const read = colours(points, size);
    const times = [], pictures = [];
    for (const moment of moments) {
        times.push((await seek(video, moment, 700)) ?? times.at(-1) ?? first);
        pictures.push(read(video));
    }
    return { size, times, pictures, duration: video.duration };
}

// scripts/checks/browser: an MP4 beside its source

/** Up to `most` of the numbers below `count`, evenly spaced, including the first and the last. */
function some(count, most) {
    if (count <= most) return [...Array(count).keys()];
    return [...Array(most).keys()].map((index) => Math.round(index * (count - 1) / (most - 1)));
}

/**
 * Compares the pixels that `gifreel frames` wrote into a folder with the browser's, before anything is encoded. A colour is compared after
 * multiplication by its alpha, because nothing is seen of it where alpha is 0, and Chromium keeps it so.
 */
async function compareComposed(url, folder, most) {
    const { delays_ms: delays } = await (await fetch(`${folder}/meta.json`)).json();
    const { decoder, starts } = await openImage(url, { premultiplyAlpha: "none", colorSpaceConversion: "none" });
    let composed = 0, firstWrong = null;
    for (const index of some(starts.length, most)) {
        const wanted = await withFrame(decoder, index, async (image) => {
            const pixels = new Uint8Array(image.allocationSize({ format: "RGBA" }));
            await image.copyTo(pixels, { format: "RGBA" });
            return pixels;
        });
        const name = `frame_${String(index).padStart(3, "0")}.rgba`;
        const found = new Uint8Array(await (await fetch(`${folder}/${name}`)).arrayBuffer());
        let worst = found.length === wanted.length ? 0 : 255;
        for (let at = 0; at < found.length; at += 4) {
            const [ours, theirs] = [found[at + 3], wanted[at + 3]];
            worst = Math.max(worst, Math.abs(ours - theirs));
            for (let channel = at; channel < at + 3; channel++) {
                worst = Math.max(worst, Math.round(Math.abs(found[channel] * ours - wanted[channel] * theirs) / 255));
            }
        }
        if (worst > 2) firstWrong ??= index;
        composed = Math.max(composed, worst);
    }
    return { composed, firstWrong, composedFrames: delays.length };
}

/**
 * The video's picture in the size of the source, from the decoded planes, by the colour tags that the browser read.
 *
 * A canvas would not do: without a GPU, Chromium paints with libyuv, whose BT.709 uses 2 instead of 2.112 as the factor of Cb for
 * blue. A saturated yellow is then ten levels off with every encoder.
 */
async function videoPixels(video, [width, height]) {
    const frame = new VideoFrame(video);
    const { matrix, primaries, transfer, fullRange } = frame.colorSpace;
    const tags = `${frame.format} ${matrix} ${primaries} ${transfer} ${fullRange ? "full" : "limited"}`;
    if (tags !== "I420 bt709 bt709 iec61966-2-1 limited") throw new Error(`the video is ${tags}`);
    const bytes = new Uint8Array(frame.allocationSize());
    const [lumas, cbs, crs] = await frame.copyTo(bytes);
    frame.close();
    const pixels = new Uint8ClampedArray(width * height * 4);
    for (let y = 0, at = 0; y < height; y++) {
        for (let x = 0; x < width; x++, at += 4) {
            const luma = (bytes[lumas.offset + y * lumas.stride + x] - 16) * 255 / 219;
            const cb = (bytes[cbs.offset + (y >> 1) * cbs.stride + (x >> 1)] - 128) * 255 / 224;
            const cr = (bytes[crs.offset + (y >> 1) * crs.stride + (x >> 1)] - 128) * 255 / 224;
            pixels[at] = luma + 1.5748 * cr;
            pixels[at + 1] = luma - 0.1873 * cb - 0.4681 * cr;
            pixels[at + 2] = luma + 1.8556 * cb;
        }
    }
    return pixels;
}

/** The mean difference of each channel over squares of eight pixels: a wrong colour or position, and not a loss of detail. */
function difference(a, b, [width, height]) {
    const columns = Math.ceil(width / 8);
    const sums = Array.from({ length: 3 }, () => new Float64Array(columns * Math.ceil(height / 8)));
    for (let y = 0, at = 0; y < height; y++) {
        for (let x = 0; x < width; x++, at += 4) {
            for (let channel = 0; channel < 3; channel++) sums[channel][(y >> 3) * columns + (x >> 3)] += b[at + channel] - a[at + channel];
        }
    }
    return sums.map((sum) => sum.reduce((total, value) => total + Math.abs(value), 0) / (width * height));
}

/**
 * Compares times and pictures: each sampled frame of the source with the video's picture right after the frame begins and six
 * milliseconds before it ends. Chromium rounds a time it seeks to to the track's unit, a hundredth of a second.
 */
async function compareVideo(url, videoURL, most) {
    const { decoder, starts, durations, end, size } = await openImage(url);
    const { video, first } = await openVideo(videoURL);
    const read = sheet(...size, "#fff");
    const late = [], colour = [0, 0, 0];
    let compared = 0;
    for (const index of some(starts.length, most)) {
        const wanted = await withFrame(decoder, index, read);
        for (const time of [starts[index] + 0.001, starts[index] + durations[index] - 0.006]) {
            const began = await seek(video, time);
            // If frames look the same, a sample may have begun earlier. None begins between the two times.
            if (began === null || began > starts[index] + 0.0005) late.push({ time, began });
            difference(wanted, await videoPixels(video, size), size).forEach((value, channel) => { colour[channel] += value; });
            compared += 1;
        }
    }
    return {
        size, videoSize: [video.videoWidth, video.videoHeight], frames: starts.length, end, duration: video.duration, first, late, compared,
        colour: Math.max(...colour) / compared,
    };
}
