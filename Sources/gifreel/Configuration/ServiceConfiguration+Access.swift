internal import Fetch
internal import Renditions
internal import Web

// Who may ask, and for what.
extension ServiceConfiguration {
    mutating func readAccess(_ settings: SettingsReader) throws(ConfigurationError) {
        fetch.loopName = try settings.text("sources.loop_name") ?? fetch.loopName
        signingKeys = SigningKeys(try settings.list("signing.keys"))
        requiresSignature = try settings.optionalFlag("sources.require_signature") ?? !signingKeys.isEmpty
        if requiresSignature && signingKeys.isEmpty {
            // Better not to start than to stand open because a secret did not arrive.
            throw ConfigurationError("sources.require_signature is true but signing.keys holds no key.")
        }
        let perMinute = try settings.number("rate_limit.misses_per_minute", in: 0...60_000)
        let burst = try settings.number("rate_limit.burst", in: 1...100_000)
        if perMinute > 0 { rateLimit = RateLimit(perMinute: perMinute, burst: burst) }
    }

    mutating func readMounts(_ settings: SettingsReader) throws(ConfigurationError) {
        for name in settings.chosenNames("mounts") {
            guard !Route.reservedNames.contains(name), name.utf8.allSatisfy(Route.isNameByte) else {
                throw ConfigurationError(
                    "mounts.\(name) cannot be used: the name is taken or holds other than a–z, 0–9, - and _.")
            }
            let mount = try readMount("mounts.\(name)", settings)
            mounts[name] = mount
            // Whoever names an origin means to fetch from it.
            fetch.allow += mount.patterns
            if let freshFor = mount.freshFor { originRules.freshFor[mount.base] = freshFor }
        }
    }

    private func readMount(_ name: String, _ settings: SettingsReader) throws(ConfigurationError) -> Mount {
        guard let text = try settings.text("\(name).origin") else {
            throw ConfigurationError("\(name).origin is missing.")
        }
        var mount: Mount
        do throws(SourceURLError) {
            mount = Mount(origin: try SourceURL(text))
        } catch {
            throw .wrongValue("\(name).origin", text, "an http or https URL")
        }
        guard mount.origin.query == nil else { throw .wrongValue("\(name).origin", text, "a URL without a query") }
        let base = mount.base
        mount.allow = try settings.items("\(name).allow", "paths below the origin, such as avatars/") { path in
            path.hasPrefix("/") || SourcePattern(base + path) == nil ? nil : path
        }
        if try settings.text("\(name).fresh_for") != nil {
            mount.freshFor = try settings.duration("\(name).fresh_for").components.seconds
        }
        if try settings.text("\(name).max_age") != nil {
            mount.maxAge = Int(try settings.duration("\(name).max_age").components.seconds)
        }
        mount.negotiates = try settings.optionalFlag("\(name).negotiate") ?? false
        mount.query = try settings.choice("\(name).query", Mount.Query.allCases)
        mount.requiresSignature = try settings.optionalFlag("\(name).require_signature")
        if mount.requiresSignature == true && signingKeys.isEmpty {
            throw ConfigurationError("\(name).require_signature is true but signing.keys holds no key.")
        }
        return mount
    }
}
