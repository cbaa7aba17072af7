/// Arranges encoded pictures as a WebP file (RFC 9649): one picture as a still image, several as an animation.
struct AnimatedWebPWriter {
    /// A rectangle that is drawn on the canvas.
    struct Frame {
        /// The time at which the frame appears, in milliseconds.
        var time: Int
        /// The area on the canvas. Its corner has even coordinates.
        var rectangle: Rectangle
        /// Whether transparent pixels leave the canvas unchanged.
        var blends: Bool
        /// The position of the chunks in the ``PacketSpool``.
        var packet: Range<Int>
    }

    /// Units per second.
    static let timescale = 1000
    /// The shortest duration that browsers honour, in milliseconds.
    private static let shortest = FrameClock.shortestDelay(timescale: timescale)
    /// The longest duration of a frame, in milliseconds (§2.7.1.3).
    private static let longest = 0xff_ffff

    let width: Int
    let height: Int
    let hasAlpha: Bool
    /// The number of plays of the animation; nil for endless.
    let plays: Int?
    /// The chunks of a transparent pixel, which prolongs a frame.
    let clearPixel: [UInt8]

    /// Arranges the file.
    ///
    /// - Parameters:
    ///   - frames: The frames in display order. The first covers the canvas.
    ///   - end: The end of the last frame, in milliseconds.
    ///   - rounds: The number of times that the file contains the frames.
    /// - Returns: The layout, and the number of frames of the file.
    func layout(_ frames: [Frame], end: Int, rounds: Int) -> (layout: FileLayout, frames: Int) {
        var body = FileLayout()
        var count = 1
        if frames.count == 1, let packet = frames.first?.packet {
            if hasAlpha { body.append(extendedHeader(isAnimation: false, hasAlpha: true)) }
            body.append(packet: packet)
        } else {
            let durations = frames.indices.map { ($0 + 1 < frames.count ? frames[$0 + 1].time : end) - frames[$0].time }
            let hasAlpha = hasAlpha || durations.contains { $0 > Self.longest }
            body.append(extendedHeader(isAnimation: true, hasAlpha: hasAlpha) + animationHeader)
            for _ in 0..<rounds {
                for (frame, duration) in zip(frames, durations) { append(frame, duration, to: &body) }
            }
            count = rounds * durations.reduce(0) { $0 + Self.parts($1).count }
        }
        var layout = FileLayout()
        layout.append(.text("RIFF") + .littleEndian(body.length + 4, 4) + .text("WEBP"))
        layout.append(body)
        return (layout, count)
    }

    private func append(_ frame: Frame, _ duration: Int, to layout: inout FileLayout) {
        let parts = Self.parts(duration)
        layout.append(Self.header(frame.rectangle, parts[0], blends: frame.blends, bytes: frame.packet.count))
        layout.append(packet: frame.packet)
        for part in parts.dropFirst() {
            let pixel = Rectangle(x: 0, y: 0, width: 1, height: 1)
            layout.append(Self.header(pixel, part, blends: true, bytes: clearPixel.count) + clearPixel)
        }
    }

    /// Splits a duration into frame durations within the limits.
    private static func parts(_ duration: Int) -> [Int] {
        var parts: [Int] = []
        var rest = duration
        while rest > longest {
            parts.append(longest - shortest)
            rest -= longest - shortest
        }
        return parts + [rest]
    }

    /// `VP8X` (§2.7.1.1).
    private func extendedHeader(isAnimation: Bool, hasAlpha: Bool) -> [UInt8] {
        let flags: UInt8 = (isAnimation ? 0x02 : 0) | (hasAlpha ? 0x10 : 0)
        return Self.chunk("VP8X", [flags, 0, 0, 0] + .littleEndian(width - 1, 3) + .littleEndian(height - 1, 3))
    }

    /// `ANIM` (§2.7.1.2), with a transparent background.
    private var animationHeader: [UInt8] {
        Self.chunk("ANIM", [0, 0, 0, 0] + .littleEndian(plays.map { min($0, 0xffff) } ?? 0, 2))
    }

    /// Returns the beginning of `ANMF` (§2.7.1.3), before the chunks of the picture.
    private static func header(_ area: Rectangle, _ duration: Int, blends: Bool, bytes: Int) -> [UInt8] {
        let fields = [area.x / 2, area.y / 2, area.width - 1, area.height - 1, duration].flatMap { [UInt8].littleEndian($0, 3) }
        return .text("ANMF") + .littleEndian(fields.count + 1 + bytes, 4) + fields + [blends ? 0 : 2]
    }

    private static func chunk(_ name: String, _ contents: [UInt8]) -> [UInt8] {
        .text(name) + .littleEndian(contents.count, 4) + contents
    }
}
