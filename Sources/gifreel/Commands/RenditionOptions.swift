internal import ArgumentParser

/// The options of renditions on the command line, with the names that they have in requests. The parser of requests
/// validates their values.
struct RenditionOptions: ParsableArguments {
    @Option(help: "2 to 4096 pixels; alone, it keeps the aspect ratio. Never enlarges.")
    var width: String?

    @Option(help: "2 to 4096 pixels; alone, it keeps the aspect ratio. Never enlarges.")
    var height: String?

    @Option(
        help: "contain (default), cover, fill or pad, with width and height.",
        completion: .list(["contain", "cover", "fill", "pad"]))
    var fit: String?

    @Option(
        help: "The part that --fit cover keeps: center (default), top, left, top-left and so on, or x:y from 0 to 1.",
        completion: .list([
            "center", "top", "bottom", "left", "right", "top-left", "top-right", "bottom-left", "bottom-right",
        ]))
    var gravity: String?

    @Option(help: "RRGGBB: the background of transparent pixels in mp4 and jpg. Default: ffffff.")
    var bg: String?

    @Option(help: "1 to 100, or lossless in awebp and gif, which is their default. Default: 60.")
    var quality: String?

    @Option(help: "1000 to 100000000: the bytes that the file may have; the quality is lowered as far as necessary.")
    var maxBytes: String?

    @Option(help: "0.1 to 10. Default: 1.")
    var speed: String?

    @Option(help: "Maximum frames per second, 1 to 60.")
    var fps: String?

    @Option(help: "Start, in seconds of the GIF.")
    var start: String?

    @Option(help: "End, in seconds of the GIF.")
    var end: String?

    @Option(help: "1 to 20: repetitions of the animation in the file. Default: 1.")
    var loops: String?

    @Option(help: "h264 (default) or av1, in mp4.", completion: .list(["h264", "av1"]))
    var codec: String?

    @Option(help: "The frame of a poster, counted from 0, or auto: one that is neither blank nor in a fade. Default: 0.")
    var frame: String?

    @Option(
        help: "The rules of a platform for stickers: whatsapp for awebp, discord for gif, sticker for webm.",
        completion: .list(["discord", "sticker", "whatsapp"]))
    var preset: String?

    @Option(
        help:
            "Removes palette dither: auto (default), where it certainly lies on a film; 1, wherever it is found; 0, nowhere.",
        completion: .list(["auto", "0", "1"]))
    var undither: String?

    @Option(help: "1 to 8: every pixel becomes a square of this side, for pixel art. Default: 1.")
    var zoom: String?

    @Option(
        help: "The content of a video: auto (default), film, screen or pixel.",
        completion: .list(["auto", "film", "screen", "pixel"]))
    var tune: String?

    @Option(
        help: "The resolution of colours in AV1, WebM and AVIF: auto (default) or 420, for players that decode only that.",
        completion: .list(["auto", "420"]))
    var chroma: String?

    @Option(
        help: "B-frames in H.264: auto (default) or 0, for players that show each picture when it is decoded.",
        completion: .list(["auto", "0"]))
    var bframes: String?

    @Option(
        help: "In json: fingerprints, the PDQ hashes of up to 16 pictures; or flashes, how often it flashes (WCAG 2.3.1).",
        completion: .list(["fingerprints", "flashes"]))
    var facts: String?

    /// The options that are given, by name.
    var pairs: [(name: String, value: String)] {
        let all: [(name: String, value: String?)] = [
            ("width", width), ("height", height), ("fit", fit), ("gravity", gravity), ("bg", bg), ("quality", quality),
            ("max_bytes", maxBytes), ("speed", speed), ("fps", fps),
            ("start", start), ("end", end), ("loops", loops), ("frame", frame), ("codec", codec),
            ("preset", preset), ("undither", undither), ("zoom", zoom), ("tune", tune), ("chroma", chroma),
            ("bframes", bframes),
            ("facts", facts),
        ]
        return all.compactMap { option in option.value.map { (name: option.name, value: $0) } }
    }
}
