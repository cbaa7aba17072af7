/// What a video is to be like (API.md §1).
package struct TranscodeOptions: Sendable, Equatable {
    /// 1…100; see ``H264Settings/rateFactor(quality:)``.
    package var quality: Int
    /// What transparent pixels are laid on.
    package var background: RGB

    package init(quality: Int = 60, background: RGB = .white) {
        self.quality = quality
        self.background = background
    }
}
