internal import Sandbox

/// The request field `Priority` (RFC 9218).
enum PriorityField {
    /// The urgency that its `u` asks for; a visitor's where there is none, or none that can be understood.
    ///
    /// Reads as much of a structured dictionary (RFC 9651) as it needs: the last `u` that is a whole number from 0 to 7.
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
