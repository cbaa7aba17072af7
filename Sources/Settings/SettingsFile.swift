internal import Yams

struct SettingsFile {
    /// By the settings' full names.
    private(set) var entries: [String: SettingEntry] = [:]
    /// The places of members of families that are named without a setting, by their full names.
    private(set) var emptyMembers: [String: String] = [:]

    /// Reads the contents of the file.
    ///
    /// - Parameter path: The name of the file in errors and origins.
    /// - Throws: ``SettingsError`` if the text is not YAML, or holds a name that no setting has.
    init(text: String, path: String) throws(SettingsError) {
        let root: Node?
        do {
            root = try compose(yaml: text)
        } catch let error as YamlError {
            throw SettingsError("The configuration file \(path) is not valid YAML: \(Self.sentence(error)).")
        } catch {
            throw SettingsError("The configuration file \(path) is not valid YAML.")
        }
        guard let root, !Self.isNull(root) else { return }
        guard let mapping = root.mapping else {
            throw SettingsError("The configuration file \(path) must hold settings as “name: value”.")
        }
        try collect(mapping, prefix: "", path)
    }

    private mutating func collect(_ mapping: Node.Mapping, prefix: String, _ path: String) throws(SettingsError) {
        for (key, node) in mapping {
            let name = prefix + (key.string ?? "?")
            let origin = Self.origin(of: key, path)
            if let setting = Setting.named(name), setting.isSecret, Self.namedFile(node) != nil {
                try add(node, of: setting, name, origin)
            } else if let sequence = node.sequence, Setting.isGroup(name), sequence.contains(where: Self.isMember) {
                let plain = Node.Sequence(sequence.filter { !Self.isMember($0) })
                try collect(sequence.filter(Self.isMember).compactMap(\.mapping), prefix: name, path)
                if let setting = Setting.named(name) {
                    try add(.sequence(plain), of: setting, name, origin)
                }
            } else if let setting = Setting.named(name), node.mapping == nil || !Setting.isGroup(name) {
                try add(node, of: setting, name, origin)
            } else if Setting.isGroup(name) {
                guard let inner = node.mapping ?? (Self.isNull(node) ? Node.Mapping([]) : nil) else {
                    throw SettingsError("\(origin): \(name) is a group of settings; it must hold names with values.")
                }
                try collect(inner, group: name, origin, path)
            } else {
                throw .unknownName(name, origin: origin)
            }
        }
    }

    private mutating func collect(
        _ settings: Node.Mapping, group: String, _ origin: String, _ path: String
    ) throws(SettingsError) {
        let before = entries.count
        try collect(settings, prefix: group + ".", path)
        if entries.count == before, Setting.isMember(group) { emptyMembers[group] = origin }
    }

    /// Collects members of a family from a list. Each item contains the name of the member beside its settings.
    private mutating func collect(_ members: [Node.Mapping], prefix: String, _ path: String) throws(SettingsError) {
        var names: Set<String> = []
        for member in members {
            guard let node = member["name"], let name = node.string, !name.isEmpty else {
                throw SettingsError("\(path): an entry of \(prefix) has no name.")
            }
            guard names.insert(name).inserted else {
                throw SettingsError("\(Self.origin(of: node, path)): \(prefix) has two entries named \(name).")
            }
            let (group, origin) = ("\(prefix).\(name)", Self.origin(of: node, path))
            guard Setting.isMember(group) else { throw .unknownName(group, origin: origin) }
            var settings = member
            settings["name"] = nil
            try collect(settings, group: group, origin, path)
        }
    }

    /// Adds a setting. Rejects duplicates, because the YAML parser rejects only those within one mapping.
    private mutating func add(_ node: Node, of setting: Setting, _ name: String, _ origin: String) throws(SettingsError) {
        if let other = entries[name] {
            throw SettingsError("\(origin): \(name) is set twice; the other place is \(other.origin).")
        }
        let entry = SettingEntry(origin: origin, parts: try Self.parts(node, of: setting, name, origin))
        // An empty text leaves a single secret unset, as in the file with the defaults. An empty list is written as [].
        entries[name] = setting.shape == .list ? try entry.checked(as: name) : entry
    }

    /// Whether an item of a list holds the settings of a member of a family.
    private static func isMember(_ item: Node) -> Bool { item.mapping != nil && namedFile(item) == nil }

    /// The path in `{file: path}`, which replaces a secret; nil for other nodes.
    private static func namedFile(_ node: Node) -> String? {
        guard let mapping = node.mapping, mapping.count == 1, let path = mapping["file"]?.scalar?.string, !path.isEmpty else {
            return nil
        }
        return path
    }

    private static func origin(of node: Node, _ path: String) -> String {
        "\(path)\(node.mark.map { ", line \($0.line)" } ?? "")"
    }

    private static func parts(
        _ node: Node, of setting: Setting, _ name: String, _ origin: String
    ) throws(SettingsError) -> [SettingEntry.Part] {
        func part(_ node: Node) -> SettingEntry.Part? {
            if setting.isSecret, let path = namedFile(node) { return .file(path) }
            // The text of a null is not a value: anyone can guess the key “null”.
            return (node.scalar?.string).map { .text(isNull(node) ? "" : $0) }
        }
        if let sequence = node.sequence, setting.shape == .list {
            let items = sequence.compactMap(part)
            guard items.count == sequence.count else {
                throw SettingsError("\(origin): \(name) must be a list of plain values.")
            }
            return items
        }
        if let mapping = node.mapping, setting.kind == .pair {
            let pairs = mapping.compactMap { name, value in
                name.string.flatMap { name in value.scalar.map { SettingEntry.Part.text("\(name)=\($0.string)") } }
            }
            guard pairs.count == mapping.count else {
                throw SettingsError("\(origin): \(name) must hold names with plain values.")
            }
            return pairs
        }
        guard let part = part(node) else {
            throw SettingsError("\(origin): \(name) must be \(setting.shape == .list ? "a list" : "one value").")
        }
        guard !isNull(node) else {
            throw SettingsError("\(origin): \(name) has no value; give it one or remove the line.")
        }
        return [part]
    }

    /// Whether a name has no value, or an explicit null.
    private static func isNull(_ node: Node) -> Bool {
        guard let scalar = node.scalar, scalar.style == .plain || scalar.style == .any else { return false }
        return ["", "~", "null", "Null", "NULL"].contains(scalar.string)
    }

    /// The description of the error, on one line.
    private static func sentence(_ error: YamlError) -> String {
        switch error {
        case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
            .composer(_, let problem, let mark, _):
            return "line \(mark.line), column \(mark.column): \(problem)"
        case .duplicatedKeysInMapping(let duplicates, let context):
            return "line \(context.mark.line): duplicate key \(duplicates.joined(separator: ", "))"
        case .reader(let problem, let offset, _, _):
            return offset.map { "byte \($0): \(problem)" } ?? problem
        default:
            return String("\(error)".prefix { $0 != "\n" })
        }
    }
}

extension SettingsError {
    static func unknownName(_ name: String, origin: String) -> SettingsError {
        let hint = Setting.nearestName(to: name).map { " Did you mean \($0)?" } ?? " gifreel settings lists all of them."
        return SettingsError("\(origin): there is no setting named \(name).\(hint)")
    }
}
