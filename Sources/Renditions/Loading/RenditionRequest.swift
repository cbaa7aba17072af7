package import Fetch
package import Media
package import Sandbox
package import Store
package import SystemIO

/// A request for one rendition of one source, as the pipeline processes it.
///
/// The value carries everything that the steps need, so that nothing else has to be passed along. The trace and the request id
/// travel in the task (`ServiceContext.current`), because logging and tracing read them there.
package struct RenditionRequest: Sendable {
    package let rendition: Rendition
    package let source: SourceURL
    /// The key of the alias that leads from the source to the rendition. Computed once, because it hashes both texts.
    package let key: AliasKey
    /// The urgency of the conversion while it waits for a worker.
    package var urgency: Urgency
    /// The client that waits; nil if it is unknown, or if none waits.
    package var client: ClientNetwork?
    /// Used before a miss begins.
    package var allowance: MissAllowance
    /// The rendition that is sent instead if this one saves too little (``PageRule``): the source itself. The same flight
    /// stores it then, and the facts of the source, so that neither needs a second fetch.
    package var alternative: Rendition?
    /// A rendition that pages show beside this one, such as a still picture. It is produced first, from the same fetch.
    package var companion: Rendition?
    /// Whether the request is answered from the store only, and causes no fetch.
    package let isOnlyFromStore: Bool
    /// Whether the source is sent in place of the rendition if it is a still image.
    package var sendsStillImages = false
    /// Follows the flight of a miss.
    package var watch: MissWatch?
    /// Whether the caller follows the bytes of the source while they arrive.
    var followsSource = false

    package init(
        _ rendition: Rendition, of source: SourceURL, urgency: Urgency = .visitor, client: ClientNetwork? = nil,
        allowance: MissAllowance = .unlimited, alternative: Rendition? = nil, isOnlyFromStore: Bool = false
    ) {
        self.rendition = rendition
        self.source = source
        self.alternative = alternative
        self.isOnlyFromStore = isOnlyFromStore
        key = AliasKey(source, rendition)
        self.urgency = urgency
        self.client = client
        self.allowance = allowance
    }

    /// The same request for another rendition of the source.
    package func with(_ other: Rendition) -> RenditionRequest {
        var request = RenditionRequest(
            other, of: source, urgency: urgency, client: client, allowance: allowance, isOnlyFromStore: isOnlyFromStore)
        request.sendsStillImages = sendsStillImages
        request.watch = watch
        return request
    }
}

/// A request for one rendition of an uploaded source, whose bytes are present.
package struct UploadRequest: Sendable {
    package let rendition: Rendition
    package let source: SourceFile
    /// The id of the rendition. It is known before the work begins because the source's digest is.
    let id: ObjectID
    package var urgency: Urgency
    package var client: ClientNetwork?
    package var allowance: MissAllowance
    /// Follows the flight of a miss.
    package var watch: MissWatch?

    package init(
        _ rendition: Rendition, of source: SourceFile, urgency: Urgency = .visitor, client: ClientNetwork? = nil,
        allowance: MissAllowance = .unlimited
    ) {
        self.rendition = rendition
        self.source = source
        id = ObjectID(source.digest, source.format, rendition)
        self.urgency = urgency
        self.client = client
        self.allowance = allowance
    }

    /// The same request for another rendition of the source.
    func with(_ other: Rendition) -> UploadRequest {
        var request = UploadRequest(other, of: source, urgency: urgency, client: client, allowance: allowance)
        request.watch = watch
        return request
    }
}

extension AliasKey {
    /// The key of a rendition of a source.
    package init(_ source: SourceURL, _ rendition: Rendition) {
        self.init(sourceURL: source.canonical, rendition: rendition.canonicalText)
    }
}

extension ObjectID {
    /// The id of the rendition of a source with that digest, as this build's encoder produces it.
    package init(_ source: SourceDigest, _ format: SourceFormat, _ rendition: Rendition) {
        self.init(source: source, rendition: rendition.canonicalText, encoderVersion: rendition.encoderVersion(of: format))
    }
}
