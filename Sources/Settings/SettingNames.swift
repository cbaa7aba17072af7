internal import SystemIO

extension Setting {
    /// The setting with this full name, such as `server.port` or `mounts.media.origin`.
    package static func named(_ name: String) -> Setting? {
        all.first { $0.matches(name) }
    }

    /// Whether a group of settings has this name, such as `server` or `mounts.media`.
    static func isGroup(_ name: String) -> Bool {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return all.contains { setting in
            let own = setting.name.split(separator: ".")
            return parts.count < own.count && zip(own, parts).allSatisfy { $0 == "*" ? !$1.isEmpty : $0 == $1 }
        }
    }

    /// Whether a group is a member of a family, such as `mounts.media`, whose name the user has chosen.
    static func isMember(_ group: String) -> Bool {
        group.lastIndex(of: ".").map { isGroup("\(group[..<$0]).?") } ?? false
    }

    /// The environment variable that sets the setting, such as `GIFREEL_SOURCES_ALLOW_PRIVATE`, with `NAME` for a chosen name.
    package var environmentName: String {
        "GIFREEL_" + name.replacing("*", with: "NAME").uppercased().replacing(".", with: "_")
    }

    /// The name of the group: the part before the first dot.
    package var group: Substring { name.prefix { $0 != "." } }

    /// The part of a full name that the user has chosen; empty for none.
    ///
    /// - Parameter fullName: A name that the setting matches.
    func chosenName(in fullName: String) -> String {
        zip(name.split(separator: "."), fullName.split(separator: ".")).first { $0.0 == "*" }.map { String($0.1) } ?? ""
    }

    private func matches(_ candidate: String) -> Bool {
        let own = name.split(separator: ".")
        let parts = candidate.split(separator: ".", omittingEmptySubsequences: false)
        return own.count == parts.count && zip(own, parts).allSatisfy { $0 == "*" ? !$1.isEmpty : $0 == $1 }
    }

    /// The name of the setting that `name` is most likely meant to be; nil if none is similar.
    static func nearestName(to name: String) -> String? {
        let parts = name.split(separator: ".")
        let candidates = all.map { setting in
            // Any chosen name is valid.
            let own = setting.name.split(separator: ".")
            guard let index = own.firstIndex(of: "*"), parts.count == own.count, own.last != "*" else { return setting.name }
            return setting.name.replacing("*", with: parts[index])
        }
        return nearest(to: name, among: candidates, separator: ".")
    }

    /// The environment variable that `variable` is most likely meant to be; nil if none is similar.
    static func nearestVariable(to variable: String) -> String? {
        nearest(to: variable, among: all.map(\.environmentName), separator: "_")
    }

    private static func nearest(to name: String, among candidates: [String], separator: Character) -> String? {
        if let best = Spelling.nearest(to: name, among: candidates) { return best }
        // The group may be missing: `port` for `server.port`.
        let last = separator == "_" ? name.dropFirst("GIFREEL_".count) : name.split(separator: separator).last ?? ""
        return candidates.first { !last.isEmpty && $0.hasSuffix("\(separator)\(last)") }
    }
}

/// Suggests corrections for misspelt names.
package enum Spelling {
    /// The candidate with the smallest edit distance, compared over at most 100 characters; nil if that exceeds both two and a
    /// sixth of the name's length.
    package static func nearest(to name: String, among candidates: [String]) -> String? {
        let start = Array(name.prefix(100))
        let distances = candidates.map { (name: $0, distance: editDistance(start, Array($0.prefix(100)))) }
        guard let best = distances.min(by: { $0.distance < $1.distance }), best.distance <= max(2, name.count / 6) else {
            return nil
        }
        return best.name
    }
}
