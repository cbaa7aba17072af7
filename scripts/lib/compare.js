// Runs in the browser for scripts/checks/browser: compares the frames of an MP4 with those of its GIF, APNG or WebP.
"use strict";

const TYPES = { gif: "image/gif", png: "image/png", apng: "image/png", webp: "image/webp" };

/** The GIF as the browser decodes it: sizes, and the start and duration of each frame, in seconds. */
async function openGIF(url) {
    const data = await (await fetch(url)).arrayBuffer();
    const decoder = new ImageDecoder({ data, type: TYPES[url.split(".").pop()] });
    await decoder.tracks.ready;
    await decoder.completed;
    const gif = { decoder, starts: [], durations: [], width: 0, height: 0, loops: decoder.tracks.selectedTrack.repetitionCount };
    let now = 0;
    for (let index = 0; index < decoder.tracks.selectedTrack.frameCount; index++) {
        const { image } = await decoder.decode({ frameIndex: index });
        // The decoder reports the coded delay; browsers show delays of up to 10 ms for 100 ms.
        const duration = image.duration <= 10_000 ? 100_000 : image.duration;
        gif.starts.push(now / 1e6);
        gif.durations.push(duration / 1e6);
        now += duration;
        [gif.width, gif.height] = [image.displayWidth, image.displayHeight];
        image.close();
    }
    gif.end = now / 1e6;
    return gif;
}

/** A canvas of a size, to draw frames on and read them from. */
function sheet(width, height) {
    const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
    return {
        pixels(source, sourceWidth, sourceHeight) {
            context.fillStyle = "#fff";
            context.fillRect(0, 0, width, height);
            context.drawImage(source, 0, 0, sourceWidth, sourceHeight, 0, 0, width, height);
            return context.getImageData(0, 0, width, height).data;
        },
    };
}

async function gifPixels(gif, index, sheet) {
    const { image } = await gif.decoder.decode({ frameIndex: index });
    const pixels = sheet.pixels(image, gif.width, gif.height);
    image.close();
    return pixels;
}

/**
 * The video's picture in the size of the GIF, from the decoded planes, converted according to the colour tags that the browser read.
 *
 * A canvas would not do: without a GPU, Chromium paints with libyuv, whose BT.709 uses 2 instead of 2.112 as the factor of Cb for
 * blue. A saturated yellow is then ten levels off with every encoder.
 */
async function videoPixels(video, width, height) {
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

/** The mean absolute difference of each channel, and the mean signed one. */
function distance(a, b) {
    const sums = [0, 0, 0], signed = [0, 0, 0];
    for (let at = 0; at < a.length; at += 4) {
        for (let channel = 0; channel < 3; channel++) {
            const difference = b[at + channel] - a[at + channel];
            sums[channel] += Math.abs(difference);
            signed[channel] += difference;
        }
    }
    const count = a.length / 4;
    return { mean: sums.map(sum => sum / count), bias: signed.map(sum => sum / count) };
}

/** The same for the means over squares of eight pixels: a difference is a wrong colour or position and not a loss of detail. */
function squares(a, b, width, height) {
    const columns = Math.ceil(width / 8), count = columns * Math.ceil(height / 8);
    const sums = Array.from({ length: 3 }, () => new Float64Array(count));
    const sizes = new Float64Array(count);
    for (let y = 0, at = 0; y < height; y++) {
        for (let x = 0; x < width; x++, at += 4) {
            const square = (y >> 3) * columns + (x >> 3);
            sizes[square] += 1;
            for (let channel = 0; channel < 3; channel++) sums[channel][square] += b[at + channel] - a[at + channel];
        }
    }
    // Weighted by size, because squares at the edge may be small.
    return sums.map(sum => sum.reduce((total, value) => total + Math.abs(value), 0) / (width * height));
}

/**
 * Compares the pixels that `gifreel frames` wrote into a folder with the browser's, before anything is encoded. A colour is compared after
 * multiplication by its alpha, because nothing is seen of it where alpha is 0, and Chromium keeps it so.
 */
async function compareComposed(sourceURL, folderURL, most) {
    const facts = await (await fetch(`${folderURL}/meta.json`)).json();
    const data = await (await fetch(sourceURL)).arrayBuffer();
    const how = { premultiplyAlpha: "none", colorSpaceConversion: "none" };
    const decoder = new ImageDecoder({ data, type: TYPES[sourceURL.split(".").pop()], ...how });
    await decoder.tracks.ready;
    await decoder.completed;
    let composed = 0, firstWrong = null;
    for (const index of sample(decoder.tracks.selectedTrack.frameCount, most)) {
        const { image } = await decoder.decode({ frameIndex: index });
        const wanted = new Uint8Array(image.allocationSize({ format: "RGBA" }));
        await image.copyTo(wanted, { format: "RGBA" });
        image.close();
        const name = `frame_${String(index).padStart(3, "0")}.rgba`;
        const found = new Uint8Array(await (await fetch(`${folderURL}/${name}`)).arrayBuffer());
        let worst = found.length === wanted.length ? 0 : 255;
        for (let at = 0; at < found.length; at += 4) {
            const [ours, theirs] = [found[at + 3], wanted[at + 3]];
            worst = Math.max(worst, Math.abs(ours - theirs));
            for (let channel = at; channel < at + 3; channel++) {
                worst = Math.max(worst, Math.round(Math.abs(found[channel] * ours - wanted[channel] * theirs) / 255));
            }
        }
        composed = Math.max(composed, worst);
        if (worst > 1) firstWrong ??= index;
    }
    return { composed, firstWrong, composedFrames: facts.delays_ms.length };
}

async function openVideo(url) {
    const video = document.createElement("video");
    video.muted = true;
    video.playsInline = true;
    video.preload = "auto";
    document.body.replaceChildren(video);
    const first = new Promise(done => video.requestVideoFrameCallback((_, frame) => done(frame)));
    const ready = new Promise((done, fail) => {
        video.oncanplaythrough = done;
        video.onerror = () => fail(new Error(`the video does not play: ${video.error.message}`));
    });
    video.src = url;
    await ready;
    return { video, first: await first };
}

/** Seeks to a time and returns the start time of the sample that the browser shows. */
async function seek(video, time) {
    const shown = new Promise(done => video.requestVideoFrameCallback((_, frame) => done(frame.mediaTime)));
    const seeked = new Promise(done => video.addEventListener("seeked", done, { once: true }));
    video.currentTime = time;
    await seeked;
    return Promise.race([shown, new Promise((_, fail) => setTimeout(fail, 5000, new Error(`no picture at ${time} s`)))]);
}

/** Up to `most` of the numbers below `count`, evenly spaced, including the first and the last. */
function sample(count, most) {
    if (count <= most) return [...Array(count).keys()];
    return [...Array(most).keys()].map(index => Math.round(index * (count - 1) / (most - 1)));
}

/**
 * Compares times and pictures: each sampled frame of the GIF with the video's picture right after the frame begins and six
 * milliseconds before it ends. Chromium rounds a time it seeks to to the track's unit, a hundredth of a second.
 */
async function comparePictures(gifURL, videoURL, most) {
    const gif = await openGIF(gifURL);
    const { video, first } = await openVideo(videoURL);
    const page = sheet(gif.width, gif.height);
    const late = [];
    const mean = [0, 0, 0], bias = [0, 0, 0], smooth = [0, 0, 0];
    let compared = 0, worst = 0, painted = 0;
    for (const index of sample(gif.starts.length, most)) {
        const wanted = await gifPixels(gif, index, page);
        const start = gif.starts[index];
        const end = start + gif.durations[index];
        for (const time of [start + 0.001, end - 0.006]) {
            const began = await seek(video, time);
            // If frames look the same, a sample may have begun earlier. None begins between the two times.
            if (began > time || (began > start + 0.0005)) late.push({ index, time, began });
            const pixels = await videoPixels(video, gif.width, gif.height);
            const found = distance(wanted, pixels);
            squares(wanted, pixels, gif.width, gif.height).forEach((value, channel) => { smooth[channel] += value; });
            painted += Math.max(...distance(wanted, page.pixels(video, gif.width, gif.height)).mean);
            for (let channel = 0; channel < 3; channel++) {
                mean[channel] += found.mean[channel];
                bias[channel] += found.bias[channel];
            }
            worst = Math.max(worst, ...found.mean);
            compared += 1;
        }
    }
    return {
        width: gif.width, height: gif.height, videoWidth: video.videoWidth, videoHeight: video.videoHeight,
        frames: gif.starts.length, end: gif.end, duration: video.duration, firstTime: first.mediaTime, compared, late, worst,
        painted: painted / compared, smooth: smooth.map(sum => sum / compared), mean: mean.map(sum => sum / compared), bias: bias.map(sum => sum / compared),
    };
}

/**
 * Plays in a loop. Reports the difference of each picture from the GIF's at that time, and for each seam how long the last
 * picture was shown and when the first one appeared.
 */
async function playLoop(gifURL, videoURL, seams) {
    const gif = await openGIF(gifURL);
    const small = sheet(Math.min(48, gif.width), Math.min(48, gif.height));
    const { video } = await openVideo(videoURL);
    const thumbnails = [];
    for (let index = 0; index < gif.starts.length; index++) thumbnails.push(await gifPixels(gif, index, small));
    const frameAt = time => gif.starts.findLastIndex(start => start <= time + 0.0005);
    const shown = [];
    video.loop = true;
    await new Promise((done, fail) => {
        const limit = setTimeout(fail, (gif.end * (seams + 2) + 20) * 1000, new Error("the video does not go on"));
        let passed = 0;
        const take = (_, frame) => {
            const index = frameAt(frame.mediaTime);
            const pixels = small.pixels(video, gif.width, gif.height);
            // On a busy machine the callback is late, and the next picture is already shown.
            const near = [index, (index + 1) % thumbnails.length];
            const mean = Math.min(...near.map(each => Math.max(...distance(thumbnails[each], pixels).mean)));
            if (shown.length && frame.mediaTime < shown.at(-1).media) passed += 1;
            shown.push({ media: frame.mediaTime, at: frame.expectedDisplayTime / 1000, index, mean });
            if (passed < seams || (passed === seams && shown.filter(each => each.media === 0).length <= seams)) {
                video.requestVideoFrameCallback(take);
            } else {
                clearTimeout(limit);
                done();
            }
        };
        video.requestVideoFrameCallback(take);
        video.play().catch(fail);
    });
    video.pause();
    const gaps = [];
    for (let at = 1; at < shown.length; at++) {
        const [before, after] = [shown[at - 1], shown[at]];
        if (after.media >= before.media) continue;
        // The picture before the seam is shown until the end.
        gaps.push({ from: before.media, to: after.media, extra: after.at - before.at - (gif.end - before.media) });
    }
    return { end: gif.end, shown: shown.length, worst: Math.max(...shown.map(each => each.mean)), gaps };
}
