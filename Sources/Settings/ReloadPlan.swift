/// The difference between the current settings and those that were just read: which take effect now, and which need a
/// restart.
package struct ReloadPlan: Equatable, Sendable {
    /// Full names of settings whose new value takes effect now, sorted.
    package private(set) var changed: [String] = []
    /// Full names of settings whose new value needs a restart, sorted.
    package private(set) var waiting: [String] = []
    /// The settings to apply: the new values, except that each setting in ``waiting`` keeps its previous value.
    package private(set) var settings: Settings

    package init(from current: Settings, to new: Settings) {
        settings = new
        for setting in Setting.all {
            let before = setting.values(in: current)
            let after = setting.values(in: new)
            let names = Set(before.keys).union(after.keys).filter { before[$0] != after[$0] }
            switch setting.effect {
            case .live: changed += names
            case .restart:
                waiting += names
                _ = setting.set(setting.texts(current), in: &settings)
            }
        }
        changed.sort()
        waiting.sort()
    }
}
