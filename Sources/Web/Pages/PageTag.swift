internal import Crypto

/// Entity tags of pages.
enum PageTag {
    /// A strong tag made of the page's content.
    static func of(_ page: String) -> String {
        let digest = SHA256.hash(data: Array(page.utf8))
        return "\"" + digest.prefix(16).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() + "\""
    }
}
