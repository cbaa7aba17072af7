/// What an encoder may hold of a canvas of some size, so that a job stays within 64 MB and 60 bytes a pixel.
///
/// Measured with x264 0.164: 46 bytes a pixel in any case, 3 for each frame of lookahead, 24 for a second thread, beside
/// 40 MB of libraries, tables and what large pages leave unused. Lookahead makes small files, by a tenth at 25 against 5, and hardly more beyond;
/// a second thread makes only a quick answer.
struct EncoderBudget: Equatable {
    /// Frames that x264 sees before it decides.
    let lookahead: Int
    /// Threads of x264, at most what was asked for.
    let threads: Int

    private static let pixelsWithTwoThreads = 600_000
    private static let shared = 24_000_000
    private static let perPixel = 60 - 46
    private static let perThread = 24
    private static let perLookahead = 3

    /// - Parameters:
    ///   - pixels: Width times height, above 0.
    ///   - threads: Threads that are free for this job.
    init(pixels: Int, threads: Int) {
        // The lookahead follows from the size alone: how busy the machine is must not be seen in the picture.
        let allowsTwo = pixels <= Self.pixelsWithTwoThreads
        let left = Self.perPixel - (allowsTwo ? Self.perThread : 0) + Self.shared / pixels
        lookahead = min(25, max(5, left / Self.perLookahead))
        self.threads = allowsTwo ? min(2, threads) : 1
    }
}
