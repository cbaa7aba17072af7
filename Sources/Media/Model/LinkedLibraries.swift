internal import CMedia

/// The libav libraries that the program runs with (its own from `scripts/libav`, or the system's), compared with the versions that
/// it was built with and the encoders that it needs.
package struct LinkedLibraries: Sendable {
    /// The error for a library that is older than the one the program was built with.
    package struct Outdated: Error, Equatable, Sendable, CustomStringConvertible {
        package let description: String
    }

    /// The versions of one library in libav's format: major << 16 | minor << 8 | micro.
    package struct Library: Sendable {
        package let name: String
        package var loaded: UInt32
        package let built: UInt32
    }

    package var libraries: [Library]
    /// Whether libavcodec has the encoder of a format.
    package var hasEncoder: @Sendable (OutputFormat) -> Bool

    /// The libraries of this process.
    package static var present: LinkedLibraries {
        LinkedLibraries(
            libraries: [
                Library(name: "libavcodec", loaded: avcodec_version(), built: gifreel_avcodec_built),
                Library(name: "libavformat", loaded: avformat_version(), built: gifreel_avformat_built),
                Library(name: "libavutil", loaded: avutil_version(), built: gifreel_avutil_built),
                Library(name: "libswscale", loaded: swscale_version(), built: gifreel_swscale_built),
            ],
            hasEncoder: { $0.traits.encoder.map { avcodec_find_encoder_by_name($0) != nil } ?? true })
    }

    /// Whether libavcodec has the encoder of a codec.
    package static func has(_ codec: VideoCodec) -> Bool { avcodec_find_encoder_by_name(codec.traits.encoder) != nil }

    /// The formats whose encoders are present. The others are not offered.
    package static let offered = OutputFormat.allCases.filter(present.hasEncoder)

    /// Checks the libraries, once before the first job. An encoder that is not required may be missing; its format is then refused.
    ///
    /// - Throws: ``Outdated`` for the first that is too old, ``TranscodeError/encoderMissing(_:)``.
    package func check() throws {
        // Within a major version, minor versions add functions and remove none; the micro version does not matter
        // (libavutil/version.h).
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
