internal import ArgumentParser

/// The options of renditions on the command line, under the names they have in requests. Their values are read where those
/// of requests are.
struct RenditionOptions: ParsableArguments {
    @Option(help: "2 to 4096 pixels; alone, it keeps the aspect ratio. Never enlarges.")
    var width: String?

    @Option(help: "2 to 4096 pixels; alone, it keeps the aspect ratio. Never enlarges.")
    var height: String?

    @Option(help: "contain (default), cover or fill, with width and height.")
    var fit: String?

    @Option(help: "RRGGBB: what transparent pixels are laid on in mp4 and jpg; default ffffff.")
    var bg: String?

    @Option(help: "1 to 100, default 60.")
    var quality: String?

    @Option(help: "0.1 to 10, default 1.")
    var speed: String?

    @Option(help: "1 to 60 frames a second at most.")
    var fps: String?

    @Option(help: "Where to begin, in seconds of the GIF's time.")
    var start: String?

    @Option(help: "Where to end, in seconds of the GIF's time.")
    var end: String?

    @Option(help: "1 to 20: how often the animation stands in the file; default 1.")
    var loops: String?

    @Option(help: "The frame of a poster, counted from 0.")
    var frame: String?

    /// Those that are given, by name.
    var pairs: [(name: String, value: String)] {
        let all: [(name: String, value: String?)] = [
            ("width", width), ("height", height), ("fit", fit), ("bg", bg), ("quality", quality), ("speed", speed),
            ("fps", fps),
            ("start", start), ("end", end), ("loops", loops), ("frame", frame),
        ]
        return all.compactMap { option in option.value.map { (name: option.name, value: $0) } }
    }
}
