/// What `quality` 1…100 means to the encoders of posters: two straight lines that meet at the default, which looks as good
/// as the video's does.
enum PosterQuality {
    /// JPEG's quality: 60 ↦ 82, 1 ↦ 10, 100 ↦ 98.
    static func jpeg(_ quality: Int) -> Int { line(quality, lowest: 10, middle: 82, highest: 98) }

    /// WebP's quality: 60 ↦ 80, 1 ↦ 5, 100 ↦ 100.
    static func webp(_ quality: Int) -> Int { line(quality, lowest: 5, middle: 80, highest: 100) }

    private static func line(_ quality: Int, lowest: Int, middle: Int, highest: Int) -> Int {
        quality <= 60
            ? lowest + (middle - lowest) * (quality - 1) / 59
            : middle + (highest - middle) * (quality - 60) / 40
    }
}
