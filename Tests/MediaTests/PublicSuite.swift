import Foundation

/// The expectations of the public decoder suite of robert-ancell/pygif, read from its `.conf` files.
struct PublicSuite {
    /// One file of the suite and what its frames must look like.
    struct Case {
        let name: String
        let gif: [UInt8]
        let width: Int
        let height: Int
        /// Each expected frame: RGBA words as ``Composing`` makes them, and its delay where the suite names one.
        let frames: [(pixels: [UInt32], delay: Int?)]
        /// The raw loop count; nil where the file has no loop extension.
        let loopCount: Int?
        /// Whether images without a delay are frames of their own here, as they are in browsers.
        let showsEveryImage: Bool
    }

    /// Files on whose broken images the suite decides otherwise than browsers do: it expects a blank frame if an image descriptor is
    /// followed by no data, and clips a first image that is larger than the screen.
    private static let undecided: Set = [
        "no-data", "image-zero-width", "image-zero-height", "image-zero-size", "missing-pixels", "image-overlap-bg",
    ]

    /// The suite's cases in the order of their names; those without an expected frame are left out.
    static func cases(in folder: URL) throws -> [Case] {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            .filter { $0.hasSuffix(".conf") }.map { String($0.dropLast(5)) }
        return try names.filter { !undecided.contains($0) }.sorted().compactMap { try read($0, in: folder) }
    }

    private static func read(_ name: String, in folder: URL) throws -> Case? {
        func bytes(_ file: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: folder.appendingPathComponent(file))) }
        // Comments in the suite's files are bytes of any kind.
        let sections = sections(String(decoding: try bytes("\(name).conf"), as: UTF8.self))
        guard let config = sections["config"], let input = config["input"] else { return nil }
        let frames = try (config["frames"] ?? "").split(separator: ",").map { frame in
            let section = sections[String(frame)] ?? [:]
            return (words(try bytes(section["pixels"] ?? "")), section["delay"].flatMap { Int($0) })
        }
        if frames.isEmpty { return nil }
        let loop = config["loop-count"] ?? "0"
        return Case(
            name: name, gif: try bytes(input), width: Int(config["width"] ?? "") ?? 0,
            height: Int(config["height"] ?? "") ?? 0, frames: frames,
            loopCount: loop == "infinite" ? 0 : loop == "0" ? nil : Int(loop),
            showsEveryImage: config["force-animation"] == "yes")
    }

    /// The `name = value` lines of each `[section]`.
    private static func sections(_ text: String) -> [String: [String: String]] {
        var result: [String: [String: String]] = [:]
        var section = ""
        for line in text.split(whereSeparator: \.isNewline) {
            if line.hasPrefix("["), line.hasSuffix("]") {
                section = String(line.dropFirst().dropLast())
                continue
            }
            let parts = line.split(separator: "=", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
            if parts.count == 2 { result[section, default: [:]][parts[0]] = parts[1] }
        }
        return result
    }

    /// RGBA bytes as words; all transparent pixels are alike, whatever their colour.
    private static func words(_ bytes: [UInt8]) -> [UInt32] {
        stride(from: 0, to: bytes.count - bytes.count % 4, by: 4).map { at in
            bytes[at + 3] == 0
                ? Composing.clear
                : UInt32(bytes[at]) | UInt32(bytes[at + 1]) << 8 | UInt32(bytes[at + 2]) << 16 | UInt32(bytes[at + 3]) << 24
        }
    }
}
