internal import Sandbox

// What a request prefers: how soon it is answered, and whether it waits for the result.

/// The request field `Priority` (RFC 9218).
enum PriorityField {
    /// The urgency of the field's parameter `u`; a visitor's if the field has none, or only malformed ones.
    ///
    /// Reads the part of a structured dictionary (RFC 9651) that is needed: the last `u` that is a whole number from 0 to 7.
    static func urgency(_ value: String?) -> Urgency {
        var urgency = Urgency.visitor
        for member in (value ?? "").split(separator: ",") {
            let item = member.prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }
            guard item.hasPrefix("u="), let level = Int(item.dropFirst(2)), (0...7).contains(level) else { continue }
            urgency = Urgency(level: level)
        }
        return urgency
    }
}

/// The request field `Prefer` (RFC 7240).
enum PreferField {
    /// Whether the client prefers an answer at once to one with the result.
    static func namesAsync(_ values: [String]) -> Bool {
        ListField.elements(values).contains { $0.name == "respond-async" }
    }
}
