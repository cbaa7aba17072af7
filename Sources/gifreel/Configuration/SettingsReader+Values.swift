extension SettingsReader {
    /// A whole number in a range.
    func number(_ name: String, in range: ClosedRange<Int>) throws(ConfigurationError) -> Int {
        let value = try text(name) ?? ""
        guard let number = Int(value), range.contains(number) else {
            throw .wrongValue(name, value, "a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// Bytes; see ``Quantity/bytes(_:)``.
    func bytes(_ name: String) throws(ConfigurationError) -> Int {
        let value = try text(name) ?? ""
        guard let bytes = Quantity.bytes(value) else {
            throw .wrongValue(name, value, "a number of bytes, such as 20MiB")
        }
        return bytes
    }

    /// A time; see ``Quantity/duration(_:)``.
    func duration(_ name: String) throws(ConfigurationError) -> Duration {
        let value = try text(name) ?? ""
        guard let duration = Quantity.duration(value) else { throw .wrongValue(name, value, "a time, such as 10s") }
        return duration
    }

    /// `true` or `false`; nil where nothing is set.
    func optionalFlag(_ name: String) throws(ConfigurationError) -> Bool? {
        try text(name) == nil ? nil : flag(name)
    }

    /// `true` or `false`.
    func flag(_ name: String) throws(ConfigurationError) -> Bool {
        let value = try text(name) ?? ""
        guard let flag = Bool(value) else { throw .wrongValue(name, value, "true or false") }
        return flag
    }

    /// One of a few words.
    func choice<Choice: RawRepresentable<String>>(
        _ name: String, _ choices: [Choice]
    ) throws(ConfigurationError) -> Choice {
        let value = try text(name) ?? ""
        guard let choice = Choice(rawValue: value) else {
            throw .wrongValue(name, value, "one of " + choices.map(\.rawValue).joined(separator: ", "))
        }
        return choice
    }

    /// A list whose items all have to make a value.
    func items<Item>(
        _ name: String, _ expectation: String, _ make: (String) -> Item?
    ) throws(ConfigurationError) -> [Item] {
        var items: [Item] = []
        for text in try list(name) {
            guard let item = make(text) else { throw .wrongValue(name, text, expectation) }
            items.append(item)
        }
        return items
    }
}

extension SettingsReader {
    /// The value of every setting in force by its name, secrets and all; empty for none.
    func values() throws(ConfigurationError) -> [String: String] {
        var values: [String: String] = [:]
        for setting in Setting.all {
            for name in names(of: setting) {
                if case .list = setting.kind {
                    values[name] = try list(name).joined(separator: ",")
                } else {
                    values[name] = try text(name) ?? ""
                }
            }
        }
        return values
    }

    /// The setting's name, or where the user chooses a part of it, each.
    private func names(of setting: Setting) -> [String] {
        setting.name.contains("*") ? chosenNames("mounts").map { setting.name.replacing("*", with: $0) } : [setting.name]
    }

    /// `name: value` of every setting in force, secrets masked.
    func lines() throws(ConfigurationError) -> [String] {
        let values = try values()
        var lines: [String] = []
        for setting in Setting.all {
            for name in names(of: setting) {
                let value = values[name].flatMap { $0.isEmpty ? nil : setting.isSecret ? "***" : $0 }
                lines.append("\(name): \(value ?? "–")")
            }
        }
        return lines
    }
}
