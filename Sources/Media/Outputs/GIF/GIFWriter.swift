/// Arranges compressed frames as a GIF (GIF89a).
struct GIFWriter {
    struct Frame {
        let frame: GIFFrameEncoder.Frame
        /// The position of the image data in the ``PacketSpool``.
        let packet: Range<Int>
    }

    /// The shortest delay that browsers honour, in hundredths of a second.
    static let shortest = FrameClock.shortestDelay(timescale: FrameClock.timescale)
    /// The longest delay, in hundredths of a second.
    static let longest = Int(UInt16.max)

    let width: Int
    let height: Int
    let palette: IndexedPalette
    /// The number of plays of the animation; nil for endless.
    let plays: Int?

    /// Arranges the file.
    ///
    /// - Parameters:
    ///   - times: The time of each frame, in hundredths of a second.
    ///   - end: The end of the last frame.
    func layout(_ frames: [Frame], times: [Int], end: Int) -> FileLayout {
        var layout = FileLayout()
        layout.append(header + (frames.count > 1 ? Self.repetition(plays: plays) : []))
        for (index, frame) in frames.enumerated() {
            let isStill = frames.count == 1
            let duration = isStill ? 0 : (index + 1 < frames.count ? times[index + 1] : end) - times[index]
            let (disposal, transparent) = (frame.frame.disposal, frame.frame.transparent)
            if !isStill || transparent != nil {
                layout.append(Self.control(disposal, transparent: transparent, delay: duration))
            }
            layout.append(Self.descriptor(frame))
            layout.append(packet: frame.packet)
        }
        layout.append([0x3b])
        return layout
    }

    /// The screen and the global palette (§17–19).
    private var header: [UInt8] {
        .text("GIF89a") + .littleEndian(width, 2) + .littleEndian(height, 2) + [UInt8(0xf0 | (palette.bits - 1)), 0, 0]
            + palette.bytes
    }

    /// Returns the extension for the number of repetitions after the first play; empty for one play.
    static func repetition(plays: Int?) -> [UInt8] {
        if plays == 1 { return [] }
        let count = plays.map { min($0 - 1, Int(UInt16.max)) } ?? 0
        return [0x21, 0xff, 11] + .text("NETSCAPE2.0") + [3, 1] + .littleEndian(count, 2) + [0]
    }

    /// The graphic control extension (§23).
    static func control(_ disposal: AnimationFrame.Disposal, transparent: UInt8?, delay: Int) -> [UInt8] {
        let fields = disposal.rawValue << 2 | (transparent == nil ? 0 : 1)
        return [0x21, 0xf9, 4, fields] + .littleEndian(delay, 2) + [transparent ?? 0, 0]
    }

    /// The image descriptor (§20) and the palette of the frame.
    private static func descriptor(_ frame: Frame) -> [UInt8] {
        let area = frame.frame.rectangle
        let palette = frame.frame.palette
        let fields = palette.isEmpty ? 0 : UInt8(0x80 | ((palette.count / 3).trailingZeroBitCount - 1))
        let sides = [area.x, area.y, area.width, area.height].flatMap { [UInt8].littleEndian($0, 2) }
        return [0x2c] + sides + [fields] + palette
    }
}
