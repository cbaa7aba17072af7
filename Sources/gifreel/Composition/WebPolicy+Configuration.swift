internal import Cache
internal import Fetch
internal import Prewarm
internal import Renditions
internal import Web

extension ServiceConfiguration {
    /// The settings of the HTTP interface.
    var web: WebPolicy {
        var web = WebPolicy(version: Gifreel.version)
        web.mounts = mounts
        web.signingKeys = signingKeys
        web.requiresSignature = requiresSignature
        web.presets = defaults.presets
        web.options = options
        web.rateLimit = rateLimit
        web.uploadLimit = uploadLimit
        web.byteLimit = byteLimit
        web.sources = fetch.sourcePolicy
        web.loopName = fetch.loopName
        web.adminToken = adminToken
        web.metricsReaders = metricsReaders
        web.maxAge = maxAge
        web.cdnMaxAge = cdnMaxAge
        web.staleFor = cache.staleFor
        web.allowOrigin = allowOrigin
        web.publicURL = publicURL
        web.hasHomePage = hasHomePage
        web.av1After = av1After
        web.maxUploadBytes = fetch.maxBytes
        return web
    }
}

extension PrewarmFailure {
    /// Code and sentence of an error, the same as those of an HTTP response.
    init(_ error: RenditionError) {
        let problem = Problem(error)
        self.init(code: problem.code, detail: problem.detail)
    }
}
