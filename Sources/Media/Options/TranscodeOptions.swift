/// What a video or a poster is to be like (API.md §1). What has no effect on a format is not looked at there.
package struct TranscodeOptions: Sendable, Hashable {
    /// 1…100; see ``H264Settings/rateFactor(quality:)``.
    package var quality: Int
    /// What transparent pixels are laid on.
    package var background: RGB
    package var size: SizeOptions
    package var time: TimeOptions
    /// The frame that a poster shows, counted from 0; past the end: the last one.
    package var frame: Int

    package init(
        quality: Int = 60, background: RGB = .white, size: SizeOptions = SizeOptions(), time: TimeOptions = TimeOptions(),
        frame: Int = 0
    ) {
        self.quality = quality
        self.background = background
        self.size = size
        self.time = time
        self.frame = frame
    }
}
