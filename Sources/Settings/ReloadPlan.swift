/// The difference between the current settings and those that were just read: which take effect now, and which need a
/// restart.
package struct ReloadPlan: Equatable, Sendable {
    /// Full names of settings whose new value takes effect now, sorted.
    package private(set) var changed: [String] = []
    /// Full names of settings whose new value needs a restart, sorted.
    package private(set) var waiting: [String] = []
    /// The settings to apply: the new values, except that each setting in ``waiting`` has its value from before.
    package private(set) var settings: Settings

    /// - Parameters:
    ///   - current: The current settings.
    ///   - new: The settings as they were just read.
    package init(from current: Settings, to new: Settings) {
        settings = new
        for setting in Setting.all {
            let before = Self.values(of: setting, in: current)
            let after = Self.values(of: setting, in: new)
            let names = Set(before.keys).union(after.keys).filter { before[$0] != after[$0] }
            switch setting.effect {
            case .live: changed += names
            case .restart:
                waiting += names
                setting.copyValue(from: current, to: &settings)
            }
        }
        changed.sort()
        waiting.sort()
    }

    private static func values(of setting: Setting, in settings: Settings) -> [String: [String]] {
        let pairs = setting.names(in: settings).map { ($0.name, setting.texts(settings, chosenName: $0.chosenName)) }
        return Dictionary(uniqueKeysWithValues: pairs)
    }
}
