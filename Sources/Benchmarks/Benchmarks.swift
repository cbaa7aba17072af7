import Foundation
import Media

/// What `scripts/bench` runs: the stages of a conversion, each GIF some rounds over, one line of JSON a GIF.
///
///     Benchmarks ROUNDS GIF…
@main
enum Benchmarks {
    static func main() throws {
        let arguments = CommandLine.arguments
        guard arguments.count > 2, let rounds = Int(arguments[1]), rounds > 0 else {
            FileHandle.standardError.write(Data("Benchmarks ROUNDS GIF…\n".utf8))
            exit(2)
        }
        Transcoder.prepareLibraries()
        for path in arguments.dropFirst(2) {
            let name = URL(fileURLWithPath: path).lastPathComponent
            let line: Line
            do {
                line = Line(file: name, costs: median(try (0..<rounds).map { _ in try measure(path) }))
            } catch let error as TranscodeError {
                line = Line(file: name, refusal: error.description)
            }
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            print(String(decoding: try encoder.encode(line), as: UTF8.self))
        }
    }

    private static func measure(_ path: String) throws -> StageCosts {
        // Not by Data(contentsOf:), which leaks a page for an empty file.
        let gif = try FileHandle(forReadingFrom: URL(fileURLWithPath: path)).readToEnd() ?? Data()
        let output = FileManager.default.temporaryDirectory.appendingPathComponent("benchmark-\(getpid()).mp4")
        let descriptor = open(output.path, O_RDWR | O_CREAT | O_TRUNC, 0o600)
        guard descriptor >= 0 else { throw Failure.output }
        defer {
            close(descriptor)
            unlink(output.path)
        }
        return try gif.withUnsafeBytes { try Transcoder().stageCosts(of: $0, to: descriptor) }
    }

    /// The median of each stage on its own.
    private static func median(_ rounds: [StageCosts]) -> StageCosts {
        guard var result = rounds.first else { return StageCosts() }
        let stages: [WritableKeyPath<StageCosts, Int>] = [\.scan, \.decode, \.compose, \.convert, \.encode, \.mux]
        for stage in stages { result[keyPath: stage] = rounds.map { $0[keyPath: stage] }.sorted()[rounds.count / 2] }
        return result
    }

    /// Nanoseconds, pixels and bytes; or why there are none.
    private struct Line: Encodable {
        let file: String
        var refusal: String?
        let scan, decode, compose, convert, encode, mux: Int
        let codedPixels, videoPixels, bytes: Int

        init(file: String, costs: StageCosts = StageCosts(), refusal: String? = nil) {
            self.file = file
            self.refusal = refusal
            (scan, decode, compose) = (costs.scan, costs.decode, costs.compose)
            (convert, encode, mux) = (costs.convert, costs.encode, costs.mux)
            (codedPixels, videoPixels, bytes) = (costs.codedPixels, costs.videoPixels, costs.bytes)
        }
    }
}

private enum Failure: Error {
    /// The output file could not be created.
    case output
}
