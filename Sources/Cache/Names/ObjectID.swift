/// The name of a stored rendition: which GIF, made into what, by which encoder.
///
/// Two URLs that give the same GIF give the same object. It is part of public URLs (`/object/{id}.{ext}`).
package struct ObjectID: DigestName {
    package let digest: Digest256

    package init(digest: Digest256) {
        self.digest = digest
    }

    /// SHA-256 over the source's SHA-256, the rendition and the encoder's version, each with its length before it.
    ///
    /// - Parameters:
    ///   - source: SHA-256 of the GIF's bytes.
    ///   - rendition: The canonical text of format and options; equal renditions must have equal texts.
    ///   - encoderVersion: Changes whenever the encoder's output may change.
    package init(source: SourceDigest, rendition: String, encoderVersion: String) {
        var hash = FramedHash(purpose: "gifreel object 1")
        hash.append(source.digest)
        hash.append(rendition)
        hash.append(encoderVersion)
        digest = hash.finish()
    }
}
