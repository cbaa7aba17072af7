package import Foundation

/// FFmpeg's programs, which check outputs independently. scripts/setup installs them.
package enum FFmpeg {
    package struct Failed: Error {
        package let log: String
    }

    /// The `name=value` pairs that ffprobe prints for a file's only stream.
    package static func stream(of file: URL) throws -> [String: String] {
        let output = try run(["ffprobe", "-v", "error", "-show_streams", "-of", "default=nw=1", file.path])
        var values: [String: String] = [:]
        for line in String(decoding: output, as: UTF8.self).split(separator: "\n") {
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 { values[String(parts[0])] = String(parts[1]) }
        }
        return values
    }

    /// The decoded frames as RGB, rows from the top, each sample once.
    package static func frames(of file: URL, width: Int, height: Int) throws -> [[UInt8]] {
        let output = [UInt8](
            try run([
                "ffmpeg", "-nostdin", "-v", "error", "-i", file.path, "-vsync", "0", "-sws_flags",
                "accurate_rnd+full_chroma_int+neighbor", "-f", "rawvideo", "-pix_fmt", "rgb24", "-",
            ]))
        let size = width * height * 3
        return stride(from: 0, to: output.count / size * size, by: size).map { Array(output[$0..<$0 + size]) }
    }

    /// The decoded frames of a VP9 video with alpha as R, G, B, A, rows from the top, each sample once.
    package static func framesWithAlpha(of file: URL, width: Int, height: Int) throws -> [[UInt8]] {
        // FFmpeg's own decoder leaves alpha out.
        let output = [UInt8](
            try run([
                "ffmpeg", "-nostdin", "-v", "error", "-c:v", "libvpx-vp9", "-i", file.path, "-vsync", "0", "-sws_flags",
                "accurate_rnd+full_chroma_int+neighbor", "-f", "rawvideo", "-pix_fmt", "rgba", "-",
            ]))
        let size = width * height * 4
        return stride(from: 0, to: output.count / size * size, by: size).map { Array(output[$0..<$0 + size]) }
    }

    /// The luma planes of a stream's decoded pictures.
    package static func lumaPlanes(of file: URL, width: Int, height: Int) throws -> [[UInt8]] {
        let output = [UInt8](
            try run([
                "ffmpeg", "-nostdin", "-v", "error", "-i", file.path, "-vsync", "0", "-vf", "extractplanes=y", "-f", "rawvideo",
                "-pix_fmt", "gray", "-",
            ]))
        let size = width * height
        return stride(from: 0, to: output.count / size * size, by: size).map { Array(output[$0..<$0 + size]) }
    }

    /// The times of a file's packets in seconds, as ffprobe prints them.
    package static func packetTimes(of file: URL) throws -> [Double] {
        let output = try run(["ffprobe", "-v", "error", "-show_entries", "packet=pts_time", "-of", "csv=p=0", file.path])
        return String(decoding: output, as: UTF8.self).split(whereSeparator: { ",\n".contains($0) }).compactMap { Double($0) }
    }

    /// The durations in seconds that the packets of a file state.
    package static func packetDurations(of file: URL) throws -> [Double] {
        let output = try run(["ffprobe", "-v", "error", "-show_entries", "packet=duration_time", "-of", "csv=p=0", file.path])
        return String(decoding: output, as: UTF8.self).split(whereSeparator: { ",\n".contains($0) }).compactMap { Double($0) }
    }

    /// The duration of a file in seconds.
    package static func duration(of file: URL) throws -> Double {
        let output = try run(["ffprobe", "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", file.path])
        return Double(String(decoding: output, as: UTF8.self).filter { !$0.isWhitespace }) ?? 0
    }

    /// The pictures per second that the parameters of an H.264 stream state, regardless of its container: a picture lasts two
    /// ticks (ITU-T H.264 §E.2.1).
    package static func statedRate(of file: URL) throws -> Double? {
        let outcome = try ChildProcess(
            URL(fileURLWithPath: "/usr/bin/env"),
            ["ffmpeg", "-nostdin", "-i", file.path, "-c", "copy", "-bsf:v", "trace_headers", "-f", "null", "-"]
        ).finish()
        guard outcome.code == 0 else { throw Failed(log: outcome.log) }
        let value = { (name: String) -> Double? in
            let line = outcome.log.split(separator: "\n").first { $0.contains(" \(name) ") }
            return line?.split(separator: " ").last.flatMap { Double($0) }
        }
        guard let units = value("num_units_in_tick"), let scale = value("time_scale") else { return nil }
        return scale / (2 * units)
    }

    /// A still picture as R, G, B, A words, rows from the top, straight alpha.
    package static func picture(_ file: URL) throws -> [UInt32] {
        let output = try run(["ffmpeg", "-nostdin", "-v", "error", "-i", file.path, "-f", "rawvideo", "-pix_fmt", "rgba", "-"])
        let bytes = [UInt8](output)
        return stride(from: 0, to: bytes.count / 4 * 4, by: 4).map { offset in
            (0..<4).reduce(UInt32(0)) { $0 | UInt32(bytes[offset + $1]) << UInt32(8 * $1) }
        }
    }

    /// A file that ffmpeg makes.
    ///
    /// - Parameter arguments: Those between the global options and the name of the output.
    package static func make(_ arguments: [String], _ fileExtension: String) throws -> [UInt8] {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("made-\(UUID().uuidString).\(fileExtension)")
        defer { try? FileManager.default.removeItem(at: file) }
        _ = try run(["ffmpeg", "-nostdin", "-v", "error"] + arguments + [file.path])
        return [UInt8](try Data(contentsOf: file))
    }

    /// The pictures of a clip as R, G, B, A words, turned upright, converted by zimg with linear interpolation of colours.
    ///
    /// - Parameters:
    ///   - matrix: Of a clip without statement.
    ///   - siting: Of chroma, between columns.
    package static func clipFrames(
        _ clip: [UInt8], _ fileExtension: String, matrix: String?, siting: String = "left", decoder: String? = nil
    ) throws -> [[UInt32]] {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("clip-\(UUID().uuidString).\(fileExtension)")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(clip).write(to: file)
        // FFmpeg 7 lists the still picture of an AVIF before its sequence.
        let count = try run([
            "ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "stream=index", "-of", "csv=p=0", file.path,
        ])
        .count { $0 == UInt8(ascii: "\n") }
        let video = fileExtension == "avif" ? count - 1 : 0
        let filter = "zscale=m=gbr:r=full:f=bilinear:cin=\(siting)" + (matrix.map { ":min=\($0)" } ?? "")
        let output = try run(
            ["ffmpeg", "-nostdin", "-v", "error", "-noautorotate"] + (decoder.map { ["-c:v", $0] } ?? [])
                + ["-i", file.path, "-map", "0:v:\(video)", "-vf", filter + ",format=gbrap,format=rgba", "-vsync", "0"]
                + ["-f", "rawvideo", "-pix_fmt", "rgba", "-"])
        let size = try stream(of: file)
        let pixels = (Int(size["width"] ?? "") ?? 0) * (Int(size["height"] ?? "") ?? 0)
        let words = output.withUnsafeBytes { Array($0.bindMemory(to: UInt32.self)) }
        return stride(from: 0, to: pixels == 0 ? 0 : words.count / pixels * pixels, by: max(1, pixels)).map {
            Array(words[$0..<$0 + pixels])
        }
    }

    /// A file with the stream of another.
    package static func wrap(_ stream: [UInt8], _ fileExtension: String, into container: String) throws -> [UInt8] {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("raw-\(UUID().uuidString).\(fileExtension)")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(stream).write(to: file)
        return try make(["-fflags", "+genpts", "-r", "10", "-i", file.path, "-c", "copy"], container)
    }

    /// The pictures of a clip in 4:2:0 as its decoder has them: luma, Cb and Cr one after the other.
    package static func clipPlanes(_ clip: [UInt8], _ fileExtension: String) throws -> [UInt8] {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("clip-\(UUID().uuidString).\(fileExtension)")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(clip).write(to: file)
        return try run(
            ["ffmpeg", "-nostdin", "-v", "error", "-i", file.path, "-map", "0:v:0", "-vsync", "0", "-f", "rawvideo", "-"])
    }

    private static func run(_ arguments: [String]) throws -> [UInt8] {
        let outcome = try ChildProcess(URL(fileURLWithPath: "/usr/bin/env"), arguments).finish()
        guard outcome.code == 0 else { throw Failed(log: outcome.log) }
        return outcome.bytes
    }
}
