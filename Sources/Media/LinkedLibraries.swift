internal import CAV

/// The libav libraries that were found when the program was loaded, against those it was built with.
package enum LinkedLibraries {
    /// A library that lacks what this program was built to use of it.
    package struct Outdated: Error, Equatable, Sendable, CustomStringConvertible {
        package let description: String
    }

    /// Checks the libraries once, before the first job.
    ///
    /// - Throws: ``Outdated`` for the first that is too old.
    package static func check() throws(Outdated) {
        try check("libavcodec", loaded: avcodec_version(), built: gifreel_avcodec_built)
        try check("libavformat", loaded: avformat_version(), built: gifreel_avformat_built)
        try check("libavutil", loaded: avutil_version(), built: gifreel_avutil_built)
    }

    /// Within a major version functions are added, with a new minor one, and none is taken away; the micro version tells
    /// nothing (libavutil/version.h).
    private static func check(_ name: String, loaded: UInt32, built: UInt32) throws(Outdated) {
        guard loaded >> 8 < built >> 8 else { return }
        throw Outdated(
            description: "\(name) \(text(loaded)) is too old: this program was built with \(text(built)). Install FFmpeg's libraries of that version or newer, or build it again.")
    }

    private static func text(_ version: UInt32) -> String {
        "\(version >> 16).\(version >> 8 & 255).\(version & 255)"
    }
}
