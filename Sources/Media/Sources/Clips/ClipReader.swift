/// Reads a video clip (MP4, QuickTime, WebM) or an AV1 image sequence (AVIF) frame by frame: libavformat reads the container,
/// libavcodec decodes the pictures. Sound is ignored.
///
/// Every frame covers the canvas. A clip begins with its first picture, whatever its time. The reader holds a few pictures and
/// the times of all frames in memory. Not thread-safe. The bytes must stay valid for the reader's lifetime.
package struct ClipReader: AnimationDecoder, ~Copyable {
    /// The reader supports several formats; ``OutputMaker`` puts the actual one into results.
    package static let format = SourceFormat.mp4
    package static let replacesShortDelays = false

    private var index: ClipIndex
    private let pictures: ClipPictures
    /// The number of frames whose headers were read.
    private var number = 0
    private var isUnread = false
    /// The number of the frame whose pixels were read last, from 1.
    private var lastRead = 0

    package let loopCount: Int?
    package private(set) var ending: AnimationEnding?
    package private(set) var dataBytes = 0
    package private(set) var frame = AnimationFrame(rectangle: .empty, delay: 0, disposal: .keep)

    /// Returns the format of a clip or an image sequence; nil for other files.
    static func format(of bytes: UnsafeRawBufferPointer) -> SourceFormat? {
        bytes.starts(with: [0x1a, 0x45, 0xdf, 0xa3]) ? .webm : ISOFile.format(of: bytes)
    }

    package init(_ bytes: UnsafeRawBufferPointer, limits: MediaLimits) throws(TranscodeError) {
        guard let format = Self.format(of: bytes) else { throw .notAnAnimation }
        let container = try ClipContainer(bytes, format)
        guard let track = container.color else {
            throw container.isCutOff ? .incomplete(format) : .unsupported(format, .video)
        }
        if container.isEncrypted(track) { throw .unsupported(format, .encryption) }
        if container.needsDolbyVision(track) { throw .unsupported(format, .colors) }
        let index = try ClipIndex(container, track, limits: limits)
        guard !index.frames.isEmpty else {
            throw index.ending == .brokenOff ? .incomplete(format) : .corrupt(format, .noFrames)
        }
        pictures = try ClipPictures(bytes, format, index, limits: limits)
        self.index = index
        self.index.removeFrames(before: pictures.firstTime)
        // A clip repeats endlessly, as most GIFs do.
        let boxes = format == .avif ? container.boxes(of: track) : nil
        loopCount = boxes.map(\.loopCount) ?? 0
    }

    package var timescale: Int { index.timescale }
    package var hasRoundedDelays: Bool { index.isRounded }
    package var canvasSize: (width: Int, height: Int) { (pictures.width, pictures.height) }

    package mutating func next() throws(TranscodeError) -> Bool {
        if isUnread { _ = skipPixels() }
        if ending != nil { return false }
        guard number < index.frames.count else {
            ending = index.ending
            return false
        }
        frame = AnimationFrame(
            rectangle: Rectangle(x: 0, y: 0, width: pictures.width, height: pictures.height),
            delay: index.frames[number].delay, disposal: .keep, blend: .replace, hasAlpha: pictures.hasAlpha,
            isSync: index.frames[number].isSync)
        number += 1
        isUnread = true
        return true
    }

    package mutating func skipPixels() -> Bool {
        if isUnread { dataBytes += index.frames[number - 1].size }
        isUnread = false
        return true
    }

    package mutating func readPixels() throws(TranscodeError) -> FramePixels? { try read(asPlanes: false) }

    package var siting: FramePlanes.Siting? { pictures.siting }

    package mutating func readPlanes() throws(TranscodeError) -> FramePixels? { try read(asPlanes: true) }

    /// Decodes the current frame; nil if it was read. Skipped frames are not decoded if a sync sample allows it.
    private mutating func read(asPlanes: Bool) throws(TranscodeError) -> FramePixels? {
        guard isUnread else { return nil }
        _ = skipPixels()
        let sync = index.frames[lastRead..<number].lastIndex { $0.isSync }
        if number > lastRead + 1, let sync { pictures.skip(to: index.frames[sync].time) }
        lastRead = number
        let pixels = try pictures.picture(at: index.frames[number - 1].time, asPlanes: asPlanes)
        if pixels == nil { ending = .brokenOff }
        return pixels
    }
}
