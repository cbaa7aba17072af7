/// The name under which a request finds its rendition before anything has been fetched.
package struct AliasKey: DigestName {
    package let digest: Digest256

    package init(digest: Digest256) {
        self.digest = digest
    }

    /// SHA-256 over the source's canonical URL and the rendition's canonical text, each with its length before it.
    package init(sourceURL: String, rendition: String) {
        var hash = FramedHash(purpose: "gifreel alias 1")
        hash.append(sourceURL)
        hash.append(rendition)
        digest = hash.finish()
    }
}
