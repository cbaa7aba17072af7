internal import Digests
internal import SystemIO

/// Entity tags of pages.
enum PageTag {
    /// A strong tag: a hash of the page.
    static func of(_ page: String) -> String {
        "\"\(Hex.encode(SHA256.hash(page.utf8).prefix(16)))\""
    }
}
