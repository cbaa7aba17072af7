internal import CAV

/// The libav that a program runs with, which is its own (`scripts/libav`) or the system's, held against what it was built
/// with and what it asks for.
package struct LinkedLibraries: Sendable {
    /// A library that lacks what this program was built to use of it.
    package struct Outdated: Error, Equatable, Sendable, CustomStringConvertible {
        package let description: String
    }

    /// One library's versions, as libav packs them: major << 16 | minor << 8 | micro.
    package struct Library: Sendable {
        package let name: String
        package var loaded: UInt32
        package let built: UInt32
    }

    package var libraries: [Library]
    /// Whether libavcodec has the format's encoder.
    package var hasEncoder: @Sendable (OutputFormat) -> Bool

    /// What this process runs with.
    package static var present: LinkedLibraries {
        LinkedLibraries(
            libraries: [
                Library(name: "libavcodec", loaded: avcodec_version(), built: gifreel_avcodec_built),
                Library(name: "libavformat", loaded: avformat_version(), built: gifreel_avformat_built),
                Library(name: "libavutil", loaded: avutil_version(), built: gifreel_avutil_built),
            ],
            hasEncoder: { $0.traits.encoder.map { avcodec_find_encoder_by_name($0) != nil } ?? true })
    }

    /// Checks once, before the first job. WebP may be missing: then its posters are refused.
    ///
    /// - Throws: ``Outdated`` for the first that is too old, ``TranscodeError/encoderMissing(_:)``.
    package func check() throws {
        // Within a major version functions are added, with a new minor one, and none is taken away; the micro version tells
        // nothing (libavutil/version.h).
        for library in libraries where library.loaded >> 8 < library.built >> 8 {
            throw Outdated(
                description:
                    "\(library.name) \(Self.text(library.loaded)) is too old: this program was built with \(Self.text(library.built)). Install FFmpeg's libraries of that version or newer, or build it again."
            )
        }
        for format in OutputFormat.allCases where format.traits.isRequired && !hasEncoder(format) {
            throw TranscodeError.encoderMissing(format)
        }
    }

    private static func text(_ version: UInt32) -> String {
        "\(version >> 16).\(version >> 8 & 255).\(version & 255)"
    }
}
