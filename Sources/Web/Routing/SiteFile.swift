/// A file that is part of the program and has a path of its own.
package enum SiteFile: String, Sendable, CaseIterable {
    /// The script that pages of any origin include for their GIF images (docs/pages.md).
    case script = "gifreel.js"
    /// The module that the script loads for animations that are too large for an image.
    case videoModule = "video.js"
    /// The sample animation on the home page.
    case sample = "sample.gif"
    /// The icon that browsers request when a tab shows a response that is not a page.
    case icon = "favicon.ico"
    /// The index of the interface for language models (llmstxt.org).
    case index = "llms.txt"
}
