internal import Foundation

/// Replaces the animations of an HTML page by videos, as the page arrives: images with a GIF, or with a format that the caller
/// names. All other bytes stay as they are.
///
/// These images stay:
/// - images with `data-gifreel="off"`, `usemap`, `ismap` or `onload`;
/// - images with a relative URL, if the page's URL is unknown, and images whose URL is uncertain (see ``LinkText``);
/// - images within elements that choose among several media or show their content as a fallback.
package struct PageRewriter {
    /// Returns the video for an animation at an absolute URL; nil leaves the image as it is. May block.
    package typealias Videos = (_ url: String) -> EmbeddedVideo?

    /// The number of replaced images.
    package private(set) var count = 0

    private static let owners: Set = ["picture", "video", "audio", "object", "canvas"]

    private let videos: Videos
    /// With their dots.
    private let extensions: [String]
    private var tokenizer = HTMLTokenizer()
    private var base: URL?
    private var hasBaseElement = false
    /// Open elements whose images stay.
    private var openOwners: [String] = []

    /// - Parameters:
    ///   - base: The page's URL, which resolves relative links unless the page has a `<base>`.
    ///   - extensions: The extensions of images that are replaced, in lower case.
    package init(base: String? = nil, extensions: [String] = ["gif"], videos: @escaping Videos) {
        self.base = base.flatMap { URL(string: $0) }
        self.extensions = extensions.map { ".\($0)" }
        self.videos = videos
    }

    /// Adds a piece of the page, and returns the next piece of the rewritten page.
    package mutating func append(_ piece: some Sequence<UInt8>) -> [UInt8] { rewrite(tokenizer.append(piece)) }

    /// Ends the page, and returns the rest of the rewritten page.
    package mutating func finish() -> [UInt8] { rewrite(tokenizer.finish()) }

    private mutating func rewrite(_ tokens: [HTMLTokenizer.Token]) -> [UInt8] {
        var output: [UInt8] = []
        for token in tokens {
            switch token {
            case .text(let text):
                output += text
            case .endTag(let name, let text):
                if let index = openOwners.lastIndex(of: name) { openOwners.removeSubrange(index...) }
                output += text
            case .startTag(let tag):
                if let video = replacement(tag) {
                    output += video
                    count += 1
                } else {
                    output += tag.text
                }
                if Self.owners.contains(tag.name) { openOwners.append(tag.name) }
                if tag.name == "base" { use(tag) }
            }
        }
        return output
    }

    /// The first `<base>` with an address counts (HTML standard, section 4.2.3).
    private mutating func use(_ tag: StartTag) {
        guard !hasBaseElement, let href = tag["href"] else { return }
        hasBaseElement = true
        guard let link = LinkText.normalize(href.value) else {
            base = nil
            return
        }
        base = URL(string: link, relativeTo: base)?.absoluteURL ?? base
    }

    private func replacement(_ tag: StartTag) -> [UInt8]? {
        guard tag.name == "img", openOwners.isEmpty, let link = (tag["src"]?.value).flatMap(LinkText.normalize),
            isAnimation(link),
            tag["data-gifreel"]?.value != "off", ["usemap", "ismap", "onload"].allSatisfy({ tag[$0] == nil }),
            let url = URL(string: link, relativeTo: base)?.absoluteURL, ["http", "https"].contains(url.scheme?.lowercased()),
            let video = videos(url.absoluteString)
        else { return nil }
        return video.markup(replacing: tag)
    }

    private func isAnimation(_ link: String) -> Bool {
        let path = link.prefix { $0 != "?" && $0 != "#" }.lowercased()
        return extensions.contains { path.hasSuffix($0) }
    }
}
