internal import Fetch
internal import Renditions
internal import Settings
internal import Web

// Settings with names that the user chooses: signing keys, purge hooks and presets.

extension SigningKeys {
    /// - Throws: ``SettingsError`` for the first key that cannot be used.
    init(_ settings: Settings.Signing) throws(SettingsError) {
        var named: [SigningKey] = []
        for (name, key) in settings.named.sorted(by: { $0.key < $1.key }) {
            guard name.utf8.allSatisfy(Route.isNameByte) else {
                throw SettingsError("signing.keys.\(name) cannot be used: a key's name consists of a-z, 0-9, - and _.")
            }
            named.append(
                SigningKey(
                    secret: key.secret ?? "", name: name, sources: key.hosts,
                    rate: RateLimit(key.missesPerMinute, burst: key.burst)))
        }
        self.init(settings.keys, named: named)
    }
}

extension PurgeHook {
    /// - Throws: ``SettingsError`` if the hook cannot be called.
    init(_ settings: Settings.Purge.Hook, named name: String) throws(SettingsError) {
        guard let url = settings.url, ["http://", "https://"].contains(where: url.lowercased().hasPrefix) else {
            throw .wrongValue("purge.hooks.\(name).url", settings.url ?? "", "an http or https URL")
        }
        try SettingParser.checkFields(settings.headers, "purge.hooks.\(name).headers")
        self.init(
            name: name, url: url, method: settings.method.rawValue, fields: settings.headers, body: settings.body,
            scopes: PurgeNotice.Scope.allCases.filter { scope in settings.scopes.contains { $0.rawValue == scope.rawValue } })
    }
}

extension RenditionPresets {
    /// - Throws: ``SettingsError`` for the first preset that cannot be used.
    init(_ presets: [String: [OptionPair]]) throws(SettingsError) {
        self.init()
        for (name, pairs) in presets.sorted(by: { $0.key < $1.key }) {
            guard name.utf8.allSatisfy(Route.isNameByte) else {
                throw SettingsError("presets.\(name) cannot be used: a preset's name consists of a-z, 0-9, - and _.")
            }
            do throws(RenditionPresets.Invalid) {
                try add(name, pairs.map { RenditionPresets.Option(name: $0.name, value: $0.value) })
            } catch {
                let reason =
                    switch error {
                    case .builtInName: "“\(name)” is a built-in preset; choose another name."
                    case .option(let error): Problem(error).detail
                    }
                throw SettingsError("presets.\(name) cannot be used: \(reason)")
            }
        }
    }
}

extension RateLimit {
    /// - Parameter perMinute: 0 for no limit.
    init?(_ perMinute: Int, burst: Int) {
        guard perMinute > 0 else { return nil }
        self.init(perMinute: perMinute, burst: burst)
    }
}
