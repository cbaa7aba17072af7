internal import Foundation
internal import Settings
internal import Store

extension S3Bucket {
    /// The bucket of the shared store.
    init(_ settings: Settings.Store.S3, name: String) throws(StoreConfigurationError) {
        let endpoint = try S3Endpoint(url: settings.endpoint, region: settings.region, usesPathStyle: settings.pathStyle)
        try self.init(endpoint: endpoint, name: name, keys: try S3Keys(settings))
    }

    /// The bucket of a mount. Keys are sent to no service but that for which they are configured.
    init(
        _ settings: Settings.Mount.S3, _ store: Settings.Store.S3, name: String
    ) throws(StoreConfigurationError) {
        let endpoint = try S3Endpoint(
            url: settings.endpoint ?? store.endpoint, region: settings.region ?? store.region,
            usesPathStyle: settings.pathStyle ?? store.pathStyle)
        var keys = S3Keys.none
        if let access = settings.accessKey, let secret = settings.secretKey {
            keys = .fixed(try S3Credentials(accessKey: access, secretKey: secret))
        } else if settings.accessKey != nil || settings.secretKey != nil {
            throw StoreConfigurationError("s3", "must have both access_key and secret_key, or none of them")
        } else if settings.endpoint == nil {
            keys = try S3Keys(store)
        }
        try self.init(endpoint: endpoint, name: name, keys: keys)
    }
}

extension S3Keys {
    /// The keys of the shared store: from its settings, from the environment, or a role's.
    fileprivate init(_ settings: Settings.Store.S3) throws(StoreConfigurationError) {
        let environment = ProcessInfo.processInfo.environment.filter { !$0.value.isEmpty }
        let (access, secret) = (environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"])
        if let access = settings.accessKey, let secret = settings.secretKey {
            self = .fixed(try S3Credentials(accessKey: access, secretKey: secret))
        } else if settings.accessKey != nil || settings.secretKey != nil {
            // Requests would not be signed otherwise, or be signed with other keys.
            throw StoreConfigurationError(
                settings.accessKey == nil ? "secret_key" : "access_key",
                "must be set together with the other key, or not at all")
        } else if let access, let secret {
            self = .fixed(
                try S3Credentials(accessKey: access, secretKey: secret, sessionToken: environment["AWS_SESSION_TOKEN"]))
        } else if access != nil || secret != nil {
            throw StoreConfigurationError(
                "access_key",
                "is not set, and of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY only one is: set both or none")
        } else {
            self = .role(.ofProcess)
        }
    }
}
