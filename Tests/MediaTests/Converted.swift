import Foundation
import Glibc
@testable import Media
import TestSupport

/// What was made of a GIF, as a file and, where it is a video, as its boxes.
final class Converted {
    let file: URL
    let bytes: [UInt8]
    let result: TranscodeResult
    /// Those of a video; of anything else, none.
    let boxes: MP4Boxes

    init(
        _ gif: [UInt8], _ transcoder: Transcoder = Transcoder(), onProgress: ((FrameProgress) -> Void)? = nil
    ) throws {
        Transcoder.prepareLibraries()
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(
            "gifreel-\(UUID().uuidString).\(transcoder.output)")
        self.file = file
        let descriptor = open(file.path, O_RDWR | O_CREAT | O_EXCL, 0o600)
        defer { close(descriptor) }
        // An initializer that throws is not followed by `deinit`.
        var isWhole = false
        defer { if !isWhole { try? FileManager.default.removeItem(at: file) } }
        result = try gif.withUnsafeBytes { try transcoder.convert($0, to: descriptor, onProgress: onProgress) }
        bytes = [UInt8](try Data(contentsOf: file))
        boxes = try MP4Boxes(transcoder.output == .mp4 ? bytes : [])
        isWhole = true
    }

    /// With options alone.
    convenience init(
        _ gif: [UInt8], as output: OutputFormat = .mp4, _ change: (inout TranscodeOptions) -> Void
    ) throws {
        var options = TranscodeOptions()
        change(&options)
        try self.init(gif, Transcoder(output: output, options: options))
    }

    deinit {
        try? FileManager.default.removeItem(at: file)
    }

    /// The decoded poster as R, G, B, A words. The file lives as long as this object, so these are methods of it.
    func picture() throws -> [UInt32] { try FFmpeg.picture(file) }

    /// What ffprobe says of the file.
    func stream() throws -> [String: String] { try FFmpeg.stream(of: file) }

    /// The pictures per second that the parameters of H.264 state.
    func statedRate() throws -> Double? { try FFmpeg.statedRate(of: file) }

    /// The decoded samples as RGB.
    func frames() throws -> [[UInt8]] {
        try FFmpeg.frames(of: file, width: boxes.width, height: boxes.height)
    }

    /// The decoded RGB of a sample at a pixel.
    func color(_ sample: Int, x: Int, y: Int) throws -> [Int] {
        let frame = try frames()[sample]
        let offset = (y * boxes.width + x) * 3
        return frame[offset..<offset + 3].map(Int.init)
    }
}
